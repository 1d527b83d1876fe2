"""After an attempt that failed by itself, as on a log that can't be read: another one, or the end of the response."""

from collections.abc import Callable, Iterable, Sequence

from django.conf import settings

from responses_app.eventlog import Numbering, Segment
from responses_app.eventlog.damage import UNREADABLE, decode_log, readable_body
from responses_app.eventlog.reading import read_last, read_stored, read_whole
from responses_app.models import Response
from responses_app.protocol.builder import OutputBuilder
from responses_app.protocol.events import TERMINAL_EVENT_OF, Event
from responses_app.protocol.response_object import ResponseBody, UsageBody, initial_body
from responses_app.protocol.status import IncompleteReason, Status
from responses_app.services.lifecycle.claim import claim
from responses_app.services.lifecycle.settle import settle

# From the internal events of a log: the usage to report, and the protocol deviations of the model.
ReadSpent = Callable[[Iterable[Event]], tuple[UsageBody | None, list[str]]]

FAILED = {"code": "server_error", "message": "The server could not go on with this response."}


def is_given_up(crashes: int, *, is_stored: bool) -> bool:
    """After so many crashes no attempt follows; a request that is not stored is known to one process only."""
    is_over = settings.HERMES_RECOVERY == "incomplete" or crashes >= settings.HERMES_MAX_ATTEMPTS
    return crashes > 0 and (is_over or not is_stored)


def end_attempt(row: Response, in_memory: Sequence[Segment] = ()) -> Segment | None:
    """In a transaction: the terminal event where the response ends here, None where it is free for the next attempt.

    ``in_memory`` is the log of a response that is not stored.
    """
    mine = Response.objects.open().filter(pk=row.pk, attempt=row.attempt)
    found = mine.values_list("crashes", "cancel_requested_at").first()
    if found is None:
        return None  # it has ended, or a newer attempt has it
    crashes, cancel_requested_at = found
    if cancel_requested_at is not None:
        return end_without_fold(row, Status.CANCELLED, in_memory)
    if is_given_up(crashes + 1, is_stored=row.is_stored):
        return end_without_fold(row, Status.FAILED, in_memory)
    Response.objects.fail_attempt(row.pk, row.attempt)
    return None


def end_without_fold(row: Response, status: Status, in_memory: Sequence[Segment] = ()) -> Segment:
    """The terminal event alone, with what can be read; stored events stay as they are."""
    numbering = Numbering(row.pk, row.attempt)
    last = read_last(row.pk) if row.is_stored else (in_memory[-1] if in_memory else None)
    if last is not None:
        numbering.follow(last)
    log = read_stored(row.pk) if row.is_stored else in_memory
    body = _last_body(row, status, readable_body(log))
    segment = numbering.seal([{"type": TERMINAL_EVENT_OF[status], "response": body}])
    return settle(row, segment, body)


def _last_body(row: Response, status: Status, readable: ResponseBody) -> ResponseBody:
    created_at = int(row.created_at.timestamp())
    empty = initial_body(row.pk, model=row.model, created_at=created_at, status=status, echo={})
    return {
        **empty,
        **readable,
        "status": str(status),
        "error": FAILED if status is Status.FAILED else None,
        "usage": None,
        "incomplete_details": None,
        "completed_at": None,
    }


def abandon(response_id: str, read_spent: ReadSpent) -> bool:
    """In the caller's transaction: what was said is kept; False when somebody works on it after all."""
    claimed = claim(response_id)
    if claimed is None:
        return False
    row = claimed.row
    try:
        history = list(decode_log(read_whole(response_id)))
        usage, quirks = read_spent(history)
        builder = OutputBuilder(response_id, history)
    except UNREADABLE:
        is_cancelled = row.cancel_requested_at is not None
        end_without_fold(row, Status.CANCELLED if is_cancelled else Status.FAILED)
        return True
    if row.cancel_requested_at is not None:
        builder.finish(Status.CANCELLED, usage=usage)
    else:
        reason = {"reason": str(IncompleteReason.SERVER_INTERRUPTED)}
        builder.finish(Status.INCOMPLETE, usage=usage, incomplete=reason)
    settle(row, claimed.numbering.seal(builder.take()), builder.snapshot.body(), quirks)
    return True
