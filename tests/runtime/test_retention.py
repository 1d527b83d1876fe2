"""Retention: what goes, what stays, and that a chain that goes on keeps its earlier turns."""

from collections.abc import Callable
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.db import transaction
from django.utils import timezone

from responses_app.models import Conversation, EventSegment, InputItem, Response, Session
from responses_app.protocol.status import OnDisconnect, Status
from responses_app.services.archive.pruning import Search
from responses_app.services.archive.retention import (
    Rules,
    days_ago,
    plan,
    select,
)
from tests.support.server import Server, eventually
from tests.support.stored_rows import count_rows

pytestmark = pytest.mark.django_db(transaction=True)


def make(days: float = 0, previous: Response | None = None, owner: str = "owner", **fields: Any) -> Response:
    user, _ = get_user_model().objects.get_or_create(username=owner)
    session = previous.session if previous else Session.objects.opened(user.pk, None, "responses")
    then = timezone.now() - timedelta(days=days)
    row = Response.objects.create(
        owner=user,
        session=session,
        turn=Session.objects.next_turn(session.pk),
        previous=previous,
        model="m",
        on_disconnect=OnDisconnect.CONTINUE,
        **{"status": Status.COMPLETED, "created_at": then, "accessed_at": then, "finished_at": then, **fields},
    )
    InputItem.objects.create(response=row, position=0, item={"type": "message"})
    EventSegment.objects.create(
        response=row,
        attempt=0,
        first_position=0,
        last_position=0,
        first_sequence=0,
        next_sequence=1,
        commit_marks="0:0",
        frames=b"x",
    )
    return row


def chain(*days: float) -> list[Response]:
    rows: list[Response] = []
    for age in days:
        rows.append(make(age, rows[-1] if rows else None))
    return rows


def pruned(rules: Rules, batch: int = 100) -> set[str]:
    """The ids that went; the plan must have known how many."""
    selection = select(rules)
    before, planned = set(Response.objects.values_list("pk", flat=True)), plan(selection.rows())
    search = Search(selection, batch)
    while not search.is_over:
        found = search.next_batch()
        with transaction.atomic():
            assert search.remove(found) == len(found) <= batch
    gone = before - set(Response.objects.values_list("pk", flat=True))
    assert len(gone) == planned.removable
    return gone


def ids(*rows: Response) -> set[str]:
    return {row.pk for row in rows}


def test_the_old_go_with_all_they_have_and_their_emptied_sessions() -> None:
    old, young = make(10), make(1)
    assert pruned(Rules(created_before=days_ago(5))) == ids(old)
    assert set(InputItem.objects.values_list("response_id", flat=True)) == ids(young)
    assert set(EventSegment.objects.values_list("response_id", flat=True)) == ids(young)
    assert list(Session.objects.all()) == [young.session]


@pytest.mark.parametrize("batch", [1, 2, 100])
def test_a_turn_stays_while_a_later_one_does(batch: int) -> None:
    whole, going_on = chain(30, 20, 10), chain(30, 20, 1)
    branch = make(1, going_on[0])
    assert pruned(Rules(created_before=days_ago(5)), batch) == ids(*whole)
    assert Response.objects.filter(pk=branch.pk).exists()


def test_a_long_chain_goes_in_batches_from_its_end() -> None:
    rows = chain(*[30.0] * 25)
    search = Search(select(Rules(created_before=days_ago(5))), 10)
    with transaction.atomic():
        assert search.remove(search.next_batch()) == 10
    assert set(Response.objects.values_list("pk", flat=True)) == ids(*rows[:15])


@pytest.mark.parametrize("change", ["a turn", "a fork", "a read"])
def test_what_changed_since_it_was_found_stays_with_all_before_it(change: str) -> None:
    rows, alone = chain(30, 30, 30, 30), make(30)
    for row in (*rows, alone):
        Response.objects.filter(pk=row.pk).update(accessed_at=timezone.now() - timedelta(days=30))
    search = Search(select(Rules(keep=0)))
    found = search.next_batch()
    assert set(found) == ids(*rows, alone)
    if change == "a turn":
        make(0, rows[2])
    elif change == "a fork":
        owner = rows[2].owner
        Session.objects.create(owner=owner, public_id="fork", source="responses", fork_point=rows[2])
    else:
        Response.objects.note_access([rows[2].pk])
    with transaction.atomic():
        assert search.remove(found) == 2
    assert ids(*rows[:3]) <= set(Response.objects.values_list("pk", flat=True))


def test_the_least_recently_used_go_beyond_a_number() -> None:
    rows = [make(age) for age in (5, 4, 3, 2, 1)]
    Response.objects.filter(pk=rows[0].pk).update(accessed_at=timezone.now())
    tombstone = make(9, deleted_at=timezone.now())
    unstored = make(9, is_stored=False)
    assert pruned(Rules(keep=3)) == ids(rows[1], rows[2])
    assert ids(tombstone, unstored) <= set(Response.objects.values_list("pk", flat=True))
    assert pruned(Rules(keep=3)) == set()


def test_what_runs_and_what_a_conversation_needs_stays() -> None:
    running = make(30, status=Status.IN_PROGRESS, finished_at=None)
    head = make(30)
    conversation = Conversation.objects.create(owner=head.owner, name="kept", session=head.session)
    Response.objects.filter(pk=head.pk).update(conversation=conversation)
    assert pruned(Rules(created_before=days_ago(5), keep=0)) == set()
    assert ids(running, head) == set(Response.objects.values_list("pk", flat=True))


def test_a_turn_that_a_fresh_fork_begins_behind_stays() -> None:
    row = make(30)
    Session.objects.create(owner=row.owner, public_id="fork", source="responses", parent=row.session, fork_point=row)
    assert pruned(Rules(created_before=days_ago(5))) == set()
    Session.objects.filter(public_id="fork").update(turn_count=1)
    assert pruned(Rules(created_before=days_ago(5))) == ids(row)


def test_only_one_owner_and_one_status() -> None:
    mine, failed, others = make(9), make(9, status=Status.FAILED), make(9, owner="other")
    assert pruned(Rules(created_before=days_ago(5), owner_id=mine.owner_id, statuses=("failed",))) == ids(failed)
    assert pruned(Rules(created_before=days_ago(5), owner_id=mine.owner_id)) == ids(mine)
    assert set(Response.objects.values_list("pk", flat=True)) == ids(others)


def run(*args: str) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    call_command("prune_responses", *args, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def test_the_command_rehearses_reports_and_removes() -> None:
    make(9)
    chain(8, 0)
    out, err = run("--keep", "1", "--dry-run")
    assert out == "Would remove 1 responses.\n"
    assert "2 qualify, 1 of them stay" in err
    assert "exceeded by 1" in err
    assert Response.objects.count() == 3
    out, err = run("--keep", "1")
    assert out == "Removed 1 responses.\n"
    assert "exceeded by 1" in err
    assert run("--days", "5")[0] == "Removed 0 responses.\n"


@pytest.mark.parametrize(
    ("args", "remedy"),
    [([], "--days DAYS"), (["--days", "-1"], "0 or more"), (["--days", "1", "--owner", "x"], "no user named 'x'")],
)
def test_the_command_says_what_is_wrong(args: list[str], remedy: str) -> None:
    with pytest.raises(CommandError, match=remedy):
        run(*args)


def test_a_server_evicts_by_itself_and_conversations_keep_their_history(make_server: Callable[..., Server]) -> None:
    server = make_server(HERMES_MAX_STORED_RESPONSES="5", HERMES_SWEEP_SECS="0.05")
    client = server.openai()
    client.responses.create(input="my name is Ada", conversation="a name to keep")
    first = client.responses.create(input="one of many").id
    last = [client.responses.create(input=f"number {number}").id for number in range(12)][-1]

    def stored() -> int:
        return int(count_rows(server, "response"))

    eventually(lambda: stored() <= 6, timeout_secs=30, what="the eviction")
    with server.http() as http:
        assert http.get(f"/v1/responses/{first}").status_code == 404
        assert http.get(f"/v1/responses/{last}").status_code == 200
        after = http.post("/v1/responses", json={"input": "go on", "previous_response_id": first})
        assert (after.status_code, after.json()["error"]["code"]) == (404, "previous_response_not_found")
    client.responses.create(input="who am I?", conversation="a name to keep")
    assert "my name is Ada" in server.model_calls("who am I?")[0]["texts"]
