"""The plans of everything that a sweep, a claim and an admission ask: their indexes hold only what has not ended."""

import os
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from gateway_app.models import ProcessState, RuntimeProcess
from gateway_app.operations.cluster import read_waiting
from gateway_app.operations.health import current_work, newer_logs
from gateway_app.runtime import processes
from gateway_app.runtime.recovery import find_dead, find_interrupted
from gateway_app.runtime.sweeping import cancelled_among
from responses_app.eventlog.inserting import insert_fenced
from responses_app.eventlog.reading import read_on
from responses_app.eventlog.remote_logs import read_grown
from responses_app.eventlog.segments import Segment
from responses_app.models import EventSegment, IdempotencyKey, Response, Session
from responses_app.protocol.status import Status
from responses_app.services.history.placement import make_room
from responses_app.services.history.resent_history import _known
from responses_app.services.idempotency import forget_expired, has_expired
from responses_app.services.lifecycle import housekeeping as tidy
from responses_app.services.lifecycle.claim import claim, claimable_ids, next_in_session
from responses_app.services.lifecycle.survey import survey
from tests.support.bulk_rows import (
    copy_response,
    copy_row,
    later,
    make_row,
)
from tests.support.query_plans import plan_lines, sqlite_steps, used_indexes

pytestmark = pytest.mark.django_db
FEW, MANY = 200, int(os.environ.get("TEST_PLAN_ROWS", "4000"))
IS_LARGE = MANY > 100_000  # `make test-cluster`: PostgreSQL's planner chooses the indexes by itself
OTHERS = 100  # open responses of another session
LEASE = timedelta(seconds=10)
OPEN_ROWS = {"response_open", "response_open_turn", "primary key"}
SEGMENTS = {"segment_position_is_unique"}  # the format of a log is that of its last segment
LOGS = SEGMENTS | {"primary key"}  # SQLite has no other name for the index of a constraint
BROUGHT = {"whole w", "whole b", "whole CONSTANT"}  # positions that a statement brings with it, in plans of SQLite


class Stored:
    """A session of many ended turns with one that runs and one that waits, and what dead processes left."""

    def __init__(self, ended: int) -> None:
        long_ago = timezone.now() - timedelta(days=30)
        first = make_row(at=long_ago)
        copy_response(first, ended, is_chain=True)
        copy_row(make_segment(first), ended, {"response_id": f"'{first.pk[:24]}_' || {{n}}"})
        self.session = Session.objects.get(pk=first.session_id)
        last = Response.objects.order_by("-turn").first()
        open_row: dict[str, Any] = {"session": self.session, "waits_for_turn": True, "previous": last}
        self.running = make_row(status=Status.IN_PROGRESS, lease_owner="gone", **open_row)
        self.waiting = make_row(status=Status.QUEUED, **open_row)
        copy_response(make_row(status=Status.QUEUED), OTHERS)
        key = IdempotencyKey.objects.create(
            owner=self.session.owner, key="k", digest="d", response=first, expires_at=timezone.now() + LEASE
        )
        copy_row(key, ended, {"key": "'k' || {n}", "expires_at": later("r.expires_at", 1)})
        process = RuntimeProcess.objects.create(
            id="p", host="h", pid=1, pid_started="1", role="web", state=ProcessState.STOPPED
        )
        copy_row(process, ended, {"id": "'p' || {n}"})
        RuntimeProcess.objects.create(id="live", host="h", pid=1, pid_started="1", role="web")
        with connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                cursor.execute("ANALYZE")

        self.first = first
        make_segment(self.running)

    def looks(self) -> dict[str, tuple[Callable[[], Any], set[str], set[str]]]:
        """Each with the indexes that it must use, and those that it may use besides."""
        move = Response.objects
        session, running = self.session, self.running.pk
        dead = processes.Dead(["gone"], [])
        visible = move.visible_to(session.owner_id)
        refused = Segment(running, 99, 10, 10, 10, 11, (b"event: x\n\n",))  # no such attempt: it is stored nowhere
        unmerged, expiry, state = {"response_log_unmerged"}, {"idempotency_expiry"}, {"process_running"}
        return {
            "the sweep": (lambda: claimable_ids(10), {"response_open"}, OPEN_ROWS | SEGMENTS),
            "a claim": (lambda: claim(running), {"primary key"}, OPEN_ROWS | SEGMENTS),
            "a renewal": (lambda: move.renew("me", {running: 0}, LEASE), set(), OPEN_ROWS),
            "expired leases": (lambda: move.release_expired(processes.live()), set(), OPEN_ROWS | state),
            "own leases": (lambda: move.release_own("me", []), set(), OPEN_ROWS),
            "a release": (lambda: move.release(["gone"], is_crash=True), set(), OPEN_ROWS - {"primary key"}),
            "the next turn": (lambda: next_in_session(session.pk), {"response_open_turn"}, OPEN_ROWS | SEGMENTS),
            "an admission": (lambda: make_room(session, None, None), set(), OPEN_ROWS),
            "resent history": (
                lambda: _known(visible, ["a", "b"]),
                {"response_context", "response_chat_context"},
                {"response_context", "response_chat_context"},
            ),
            "health": (current_work, {"response_open"}, OPEN_ROWS | SEGMENTS),
            "newer logs": (newer_logs, {"response_open"}, OPEN_ROWS | SEGMENTS),
            "interrupted": (lambda: find_interrupted(dead), {"response_open"}, OPEN_ROWS | state),
            "unmerged logs": (tidy._next_untidy, unmerged, unmerged | SEGMENTS | {"primary key"}),
            "expired keys": (has_expired, expiry, expiry),
            "forgetting": (forget_expired, expiry, expiry | {"primary key"}),
            "dead processes": (find_dead, state, state | {"primary key"}),
            "other processes": (lambda: processes.has_others("me"), state, state | {"primary key"}),
            "a reader": (lambda: read_on(self.first.pk, -1, 10), set(), LOGS),
            "live workers": (lambda: processes.count_claimers("worker"), state, state | {"primary key"}),
            "cancellations": (lambda: cancelled_among([running]), set(), OPEN_ROWS),
            "the queues of owners": (read_waiting, set(), OPEN_ROWS),
            "logs of other processes": (lambda: read_grown({running: -1}), set(), LOGS | BROUGHT),
            "an append": (lambda: insert_fenced([refused], skip_locked=True), set(), {"primary key"} | BROUGHT),
            "a survey": (survey, unmerged | expiry, unmerged | expiry | OPEN_ROWS),
        }


def make_segment(row: Response) -> EventSegment:
    return EventSegment.objects.create(
        response=row,
        attempt=row.attempt,
        first_position=0,
        last_position=9,
        first_sequence=0,
        next_sequence=10,
        is_final=row.finished_at is not None,
        commit_marks="9:0",
        frames=b"event: x\n\n" * 10,
    )


def test_every_look_follows_an_index_of_what_has_not_ended() -> None:
    stored = Stored(MANY)
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql" and not IS_LARGE:
            cursor.execute("SET LOCAL enable_seqscan = off")  # a few pages are read faster without any index
    wrong = {}
    for name, (look, needed, allowed) in stored.looks().items():
        lines = plan_lines(look)
        used = used_indexes(lines)
        if IS_LARGE:  # two indexes hold what is open, and the table of users has one row here
            needed, allowed = set(), allowed | {"whole auth_user"}
        if not needed <= used <= allowed:
            wrong[name] = lines
    assert wrong == {}


@pytest.mark.skipif(connection.vendor != "sqlite", reason="counts the steps of SQLite")
def test_no_look_costs_more_when_more_has_ended() -> None:
    small = {name: sqlite_steps(look) for name, (look, _, _) in Stored(FEW).looks().items()}
    Response.objects.all().delete()
    RuntimeProcess.objects.all().delete()
    large = {name: sqlite_steps(look) for name, (look, _, _) in Stored(MANY).looks().items()}
    assert {name: (small[name], large[name]) for name in small if large[name] > small[name] + 100} == {}
