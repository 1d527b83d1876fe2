"""What follows an attempt that could not end its response: another attempt, or the end."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from django.conf import settings

from responses_app.eventlog import (
    UNREADABLE,
    Numbering,
    Segment,
    decode_log,
    read_last,
    read_stored,
    read_whole,
    readable_body,
)
from responses_app.models import Response
from responses_app.protocol.builder import OutputBuilder
from responses_app.protocol.events import TERMINAL_EVENT_OF, USAGE_ESTIMATED, Event
from responses_app.protocol.items import Item
from responses_app.protocol.response_object import ResponseBody, UsageBody, initial_body
from responses_app.protocol.status import IncompleteReason, Status
from responses_app.services.lifecycle.claim import claim
from responses_app.services.lifecycle.settle import settle


@dataclass(frozen=True)
class Spent:
    """What a log has about the work of the model."""

    usage: UsageBody | None
    is_usage_estimated: bool
    deviations: list[str]


# From the events of a log and their output items.
ReadSpent = Callable[[Iterable[Event], list[Item]], Spent]

FAILED = {"code": "server_error", "message": "The server could not go on with this response."}


def is_given_up(crashes: int, *, is_stored: bool) -> bool:
    """After so many crashes no attempt follows; only one process has an unstored request."""
    is_over = settings.HERMES_RECOVERY == "incomplete" or crashes >= settings.HERMES_MAX_ATTEMPTS
    return crashes > 0 and (is_over or not is_stored)


def end_attempt(row: Response, in_memory: Sequence[Segment] = ()) -> Segment | None:
    """In a transaction: the terminal event, or None where the response waits for its next attempt.

    ``in_memory`` is the log of a response that is not stored.
    """
    mine = Response.objects.open().filter(pk=row.pk, attempt=row.attempt)
    found = mine.values_list("crashes", "cancel_requested_at").first()
    if found is None:
        return None  # the response has ended, or a newer attempt has it
    crashes, cancel_requested_at = found
    if cancel_requested_at is not None:
        return end_without_fold(row, Status.CANCELLED, in_memory)
    if is_given_up(crashes + 1, is_stored=row.is_stored):
        return end_without_fold(row, Status.FAILED, in_memory)
    Response.objects.fail_attempt(row.pk, row.attempt)
    return None


def end_without_fold(row: Response, status: Status, in_memory: Sequence[Segment] = ()) -> Segment:
    """The terminal event alone, with what can be read; stored events stay as they are."""
    log = in_memory
    last = None
    if row.is_stored:
        log = read_stored(row.pk)
        last = read_last(row.pk)
    elif in_memory:
        last = in_memory[-1]
    numbering = Numbering(row.pk, row.attempt)
    if last is not None:
        numbering.follow(last)
    body = _last_body(row, status, readable_body(log))
    segment = numbering.seal([{"type": TERMINAL_EVENT_OF[status], "response": body}])
    return settle(row, segment, body).segment


def _last_body(row: Response, status: Status, readable: ResponseBody) -> ResponseBody:
    created_at = int(row.created_at.timestamp())
    empty = initial_body(row.pk, model=row.model, created_at=created_at, status=status, echo={})
    body = empty | readable
    body["status"] = str(status)
    body["error"] = None
    if status is Status.FAILED:
        body["error"] = FAILED
    body["usage"] = None
    body["incomplete_details"] = None
    body["completed_at"] = None
    return body


def abandon(response_id: str, read_spent: ReadSpent) -> bool:
    """In the caller's transaction: end a response that no process runs, and keep its output.

    False when a process runs it after all.
    """
    claimed = claim(response_id)
    if claimed is None:
        return False
    row = claimed.row
    try:
        history = list(decode_log(read_whole(response_id)))
        builder = OutputBuilder(response_id, history)
        spent = read_spent(history, builder.output)
    except UNREADABLE:
        if row.cancel_requested_at is not None:
            end_without_fold(row, Status.CANCELLED)
        else:
            end_without_fold(row, Status.FAILED)
        return True
    status, reason = Status.CANCELLED, None
    if row.cancel_requested_at is None:
        status, reason = Status.INCOMPLETE, {"reason": str(IncompleteReason.SERVER_INTERRUPTED)}
    if spent.is_usage_estimated:
        builder.add({"type": USAGE_ESTIMATED})
    builder.finish(status, usage=spent.usage, incomplete=reason)
    segment = claimed.numbering.seal(builder.take())
    states = builder.snapshot.states.stored()
    settle(row, segment, builder.snapshot.body(), spent.deviations, states=states)
    return True
