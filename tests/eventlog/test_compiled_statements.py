"""Hot statements are compiled once, and do what the querysets they come from do."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from responses_app.models import Response, Session
from responses_app.models.compiled import CompiledQuery, CompiledUpdate
from responses_app.models.compiled_insert import CompiledInsert
from responses_app.protocol.ids import new_response_id
from responses_app.protocol.status import OnDisconnect, Status

pytestmark = pytest.mark.django_db


@pytest.fixture
def session() -> Session:
    owner = User.objects.create_user("compiled")
    return Session.objects.create(owner=owner, public_id="s-1", source="responses", title="A title")


def named(owner_id: int, public_id: str) -> QuerySet[Session]:
    return Session.objects.filter(owner_id=owner_id, public_id=public_id, deleted_at=None)


def titles(owner_id: int) -> "QuerySet[Session, Any]":
    return Session.objects.filter(owner_id=owner_id).values_list("title", "created_at")


def test_a_query_gives_the_rows_of_its_queryset(session: Session) -> None:
    compiled = CompiledQuery(titles)
    assert compiled.rows(session.owner_id) == list(titles(session.owner_id))
    assert compiled.rows(session.owner_id + 1) == []
    assert compiled.first(session.owner_id + 1) is None


def test_a_query_gives_whole_models(session: Session) -> None:
    compiled = CompiledQuery(named)
    found = compiled.instance(session.owner_id, "s-1")
    assert found == session
    assert found.created_at == session.created_at
    assert compiled.instance(session.owner_id, "s-2") is None


def test_a_query_is_built_once(session: Session) -> None:
    built = []

    def counted(owner_id: int) -> "QuerySet[Session, Any]":
        built.append(owner_id)
        return titles(owner_id)

    compiled = CompiledQuery(counted)
    for _ in range(3):
        compiled.rows(session.owner_id)
    assert len(built) == 1


def test_an_update_sets_and_adds_in_the_rows_of_its_queryset(session: Session) -> None:
    other = Session.objects.create(owner=session.owner, public_id="s-2", source="responses")
    compiled = CompiledUpdate(named)
    at = timezone.now() + timedelta(hours=1)
    changed = compiled.execute([session.owner_id, "s-1"], {"last_active_at": at}, {"turn_count": 2})
    assert changed == 1
    session.refresh_from_db()
    other.refresh_from_db()
    assert (session.turn_count, session.last_active_at) == (2, at)
    assert other.turn_count == 0
    assert compiled.execute([session.owner_id, "s-3"], {"title": "x"}) == 0


def test_an_insertion_stores_every_field_also_expressions(session: Session) -> None:
    inserting = CompiledInsert(Response)
    for attempt in (1, 2):
        row = Response(
            id=new_response_id(),
            owner_id=session.owner_id,
            session=session,
            turn=attempt,
            attempt=attempt,
            status=Status.IN_PROGRESS,
            request={"model": "m", "text": {"format": None}},
            on_disconnect=OnDisconnect.CONTINUE,
            lease_until=Now() + timedelta(seconds=60),
        )
        with CaptureQueriesContext(connection) as queries:
            inserting.insert(row)
        assert len(queries) == 1
        stored = Response.objects.get(pk=row.pk)
        assert (stored.attempt, stored.request) == (attempt, row.request)
        assert stored.lease_until is not None
        assert stored.lease_until > timezone.now()


def test_an_insertion_sets_the_key_that_the_database_chose(session: Session) -> None:
    another = Session(owner=session.owner, public_id="s-9", source="responses")
    CompiledInsert(Session).insert(another)
    assert Session.objects.get(public_id="s-9").pk == another.pk


def test_an_insertion_that_a_constraint_forbids_changes_nothing(session: Session) -> None:
    inserting = CompiledInsert(Session)
    same = Session(owner=session.owner, public_id=session.public_id, source="chat")
    assert not inserting.insert_if_new(same)
    other = Session(owner=session.owner, public_id="s-7", source="chat")
    assert inserting.insert_if_new(other)
    assert list(Session.objects.order_by("pk").values_list("pk", flat=True)) == [session.pk, other.pk]
