"""The snapshot of a running response: always the fold of its stored log, at a cost that does not grow with it."""

import copy
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, connections, transaction
from django.test.utils import CaptureQueriesContext

from responses_app.eventlog import Fenced, Numbering, current_body, snapshots
from responses_app.eventlog.inserting import insert_fenced
from responses_app.eventlog.reading import read_whole
from responses_app.eventlog.snapshots import BodyFold, FoldCache
from responses_app.models import EventSegment, Response
from responses_app.protocol.builder import OutputBuilder
from responses_app.protocol.events import Event
from responses_app.protocol.items import content_text
from responses_app.protocol.response_object import ResponseBody
from responses_app.protocol.snapshot import fold
from responses_app.protocol.sse import decode_frames
from responses_app.protocol.status import Status
from tests.support.event_logs import (
    body_of,
    counted_rows,
    ending,
    make_response,
    store_log,
    word,
)

pytestmark = pytest.mark.django_db(transaction=True)
LEASE = timedelta(seconds=10)


def stored_fold(response_id: str) -> ResponseBody:
    return fold(decode_frames(segment.data for segment in read_whole(response_id)))


def append(numbering: Numbering, events: list[Event]) -> None:
    with transaction.atomic():
        if not insert_fenced([numbering.seal(events)]):
            raise Fenced(numbering.response_id)


def act(builder: OutputBuilder, number: int) -> list[Event]:
    """Every kind of change that a running response goes through."""
    call_id = f"call_{number}"
    steps = (
        lambda: builder.text("words ", [{"token": "words", "logprob": -1.0}]),
        lambda: builder.text("more ", [{"token": "more", "logprob": -2.0}]),
        lambda: builder.annotation({"type": "url_citation", "url": "http://x"}),
        lambda: builder.reasoning("because "),
        lambda: builder.reasoning("in short ", "summary"),
        lambda: builder.refusal("no "),
        lambda: builder.call_started(call_id, "tool"),
        lambda: builder.call_arguments(f"call_{number - 1}", "{}"),
        lambda: builder.call_finished(f"call_{number - 2}"),
        lambda: builder.tool_output(f"call_{number - 3}", "result"),
        lambda: builder.mcp_call_started(call_id, "hermes", "tool"),
        lambda: builder.opaque({"type": "apply_patch_call", "call_id": call_id, "status": "completed"}),
        lambda: builder.add({"type": "hermes.note"}),
    )
    steps[number % len(steps)]()
    return builder.take()


def test_after_every_step_and_every_attempt_it_equals_the_fold() -> None:
    row = make_response()
    opened: list[Event] = [{"type": "response.created", "response": body_of(row.pk)}]
    append(Numbering(row.pk, 0), opened)
    handed_out: list[tuple[ResponseBody, Any]] = []
    for attempt in range(3):
        Response.objects.filter(pk=row.pk).update(lease_until=None, lease_owner="")
        assert Response.objects.claim(row.pk, attempt, "me", LEASE)
        history = list(decode_frames(segment.data for segment in read_whole(row.pk)))
        builder = OutputBuilder(row.pk, history)
        numbering, overtaken = Numbering(row.pk, attempt + 1), Numbering(row.pk, attempt)
        numbering.follow(read_whole(row.pk)[-1])
        overtaken.follow(read_whole(row.pk)[-1])
        builder.close("incomplete")
        for number in range(26):
            append(numbering, [*act(builder, number), {"type": "hermes.note"}])
            with pytest.raises(Fenced):
                append(overtaken, [word("of an attempt that was overtaken")])
            body = current_body(row.pk)
            assert body == stored_fold(row.pk)
            assert body is not None
            handed_out.append((body, copy.deepcopy(body)))
    builder.finish(Status.COMPLETED)
    append(numbering, builder.take())
    assert current_body(row.pk) == stored_fold(row.pk)
    assert all(body == as_it_was for body, as_it_was in handed_out), "a body changed after it was returned"


def test_a_look_reads_only_what_is_new() -> None:
    costs = []
    for words in (100, 3000):
        row, numbering = store_log(words)
        current_body(row.pk)
        append(numbering, [word("new ")])
        with counted_rows() as cost, CaptureQueriesContext(connection) as captured:
            body = current_body(row.pk)
        assert len(captured.captured_queries) == 1
        assert body == stored_fold(row.pk)
        costs.append(cost[0])
    assert costs[1] < 1.5 * costs[0]


def test_what_is_not_committed_is_never_kept() -> None:
    row, numbering = store_log(3)
    current_body(row.pk)
    before = stored_fold(row.pk)
    with transaction.atomic():
        insert_fenced([numbering.seal([word("never")])])
        assert current_body(row.pk) == stored_fold(row.pk) != before
        transaction.set_rollback(True)
    assert current_body(row.pk) == before


def test_the_end_and_an_erasure_drop_it() -> None:
    row, numbering = store_log(3)
    cache = FoldCache(BodyFold)
    cache.read(row.pk, BodyFold.body)
    assert row.pk in cache
    append(numbering, [{"type": "hermes.note"}])
    with transaction.atomic():
        insert_fenced([ending(numbering)])
    assert cache.read(row.pk, BodyFold.body) == stored_fold(row.pk)
    assert row.pk not in cache
    erased, _ = store_log(3)
    cache.read(erased.pk, BodyFold.body)
    EventSegment.objects.filter(response_id=erased.pk).delete()
    assert cache.read(erased.pk, BodyFold.body) is None
    assert erased.pk not in cache
    known, _ = store_log(3)
    cache.read(known.pk, BodyFold.body)
    snapshots.forget(known.pk)
    assert known.pk not in cache


def test_it_is_bounded_by_count_and_by_bytes() -> None:
    rows = [store_log(10)[0] for _ in range(4)]
    few = FoldCache(BodyFold, max_count=2)
    small = FoldCache(BodyFold, max_bytes=2500)
    for row in rows:
        few.read(row.pk, BodyFold.body)
        small.read(row.pk, BodyFold.body)
    assert [row.pk in few for row in rows] == [False, False, True, True]
    assert 0 < len(small) < 4
    assert FoldCache(BodyFold, max_bytes=10).read(rows[0].pk, BodyFold.body) == stored_fold(rows[0].pk)


class Brittle(BodyFold):
    """Fails once, in the middle of a segment."""

    has_failed = False

    def apply(self, event: Event) -> None:
        super().apply(event)
        if event.get("delta") == "w1 " and not Brittle.has_failed:
            Brittle.has_failed = True
            raise ValueError("no")


def test_a_fold_that_failed_is_begun_anew() -> None:
    row, _ = store_log(3)
    cache = FoldCache(Brittle)
    with pytest.raises(ValueError, match="no"):
        cache.read(row.pk, Brittle.body)
    assert cache.read(row.pk, Brittle.body) == stored_fold(row.pk)


def test_concurrent_reads_of_an_unfinished_log_each_see_a_state_of_it() -> None:
    row, numbering = store_log(1)
    texts = ["w0 " + "x" * number for number in range(101)]
    is_over = threading.Event()

    def look() -> list[str]:
        seen = []
        while not is_over.is_set():
            body = current_body(row.pk)
            assert body is not None
            seen.append(content_text(body["output"][0]["content"]))
        connections.close_all()
        return seen

    with ThreadPoolExecutor(4) as pool:
        looks = [pool.submit(look) for _ in range(4)]
        for _ in range(100):
            append(numbering, [word("x")])
        is_over.set()
        seen = [look.result() for look in looks]
    for one in seen:
        assert set(one) <= set(texts)
        assert one == sorted(one, key=len)
    assert current_body(row.pk) == stored_fold(row.pk)
