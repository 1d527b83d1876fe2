"""Hot statements are compiled once, and do what the querysets they come from do."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, connection, transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from responses_app.models import Response, Session
from responses_app.models.compiled import CompiledQuery, CompiledUpdate
from responses_app.models.compiled_insert import CompiledInsert
from responses_app.models.compiled_move import CompiledMove
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


def test_a_move_sets_expressions_in_the_rows_of_its_queryset(session: Session) -> None:
    other = Session.objects.create(owner=session.owner, public_id="s-2", source="responses")
    Session.objects.update(last_active_at=timezone.now() - timedelta(days=1))
    built = []

    def values(owner_id: int, public_id: str) -> dict[str, Any]:
        built.append(owner_id)
        return {"turn_count": F("turn_count") + 1, "title": public_id, "last_active_at": Now()}

    compiled = CompiledMove(named, values)
    assert [compiled.execute(session.owner_id, "s-1") for _ in range(2)] == [1, 1]
    session.refresh_from_db()
    other.refresh_from_db()  # with the time of the day before
    assert (session.turn_count, session.title) == (2, "s-1")
    assert session.last_active_at > other.last_active_at
    assert other.turn_count == 0
    assert compiled.execute(session.owner_id, "s-3") == 0
    assert len(built) == 1


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
    assert not same.pk
    other = Session(owner=session.owner, public_id="s-7", source="chat")
    assert inserting.insert_if_new(other)
    assert list(Session.objects.order_by("pk").values_list("pk", flat=True)) == [session.pk, other.pk]


def test_a_new_row_has_the_fields_that_the_constructor_of_the_model_gives(session: Session) -> None:
    inserting = CompiledInsert(Response)
    given = {"owner_id": session.owner_id, "session_id": session.pk, "turn": 1, "status": Status.IN_PROGRESS}
    made = [inserting.new(**given) for _ in range(2)]
    usual = Response(**given)
    names = [field.attname for field in Response._meta.concrete_fields]
    fresh = {"id", "created_at", "accessed_at"}  # made anew for each row
    for name in set(names) - fresh:
        assert getattr(made[0], name) == getattr(usual, name), name
    assert made[0].pk != made[1].pk
    assert made[0].request is not made[1].request
    assert made[0]._state.adding


@pytest.mark.parametrize("request_fields", [{"text": "Grüße \u2028 \U0001f600"}, {"count": 2**70}])
def test_json_is_stored_as_django_reads_it(session: Session, request_fields: dict[str, Any]) -> None:
    inserting = CompiledInsert(Response)
    row = inserting.new(
        owner_id=session.owner_id,
        session_id=session.pk,
        turn=1,
        status=Status.IN_PROGRESS,
        on_disconnect=OnDisconnect.CONTINUE,
        request=request_fields,
        ignored=("a", "b"),
    )
    inserting.insert(row)
    stored = Response.objects.get(pk=row.pk)
    assert stored.request == request_fields
    assert stored.ignored == ["a", "b"]


def test_a_statement_that_fails_raises_the_error_of_django(session: Session) -> None:
    inserting = CompiledInsert(Session)
    same = inserting.new(owner_id=session.owner_id, public_id=session.public_id, source="chat")
    with pytest.raises(IntegrityError), transaction.atomic():
        inserting.insert(same)
