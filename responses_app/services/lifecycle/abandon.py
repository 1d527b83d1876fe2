"""Abandon: end a response that nobody works on, as incomplete, without asking any model."""

from collections.abc import Callable, Iterable
from typing import Any

from responses_app.eventlog.damage import UNREADABLE, decode_log
from responses_app.eventlog.segments import read_whole
from responses_app.protocol.builder import OutputBuilder
from responses_app.protocol.events import Event
from responses_app.protocol.status import IncompleteReason, Status
from responses_app.services.lifecycle.claim import claim
from responses_app.services.lifecycle.failed_attempt import end_without_fold
from responses_app.services.lifecycle.settle import settle

# From the internal events of whoever generated it: the usage to tell, and the quirks.
ReadSpent = Callable[[Iterable[Event]], tuple[dict[str, Any] | None, list[str]]]


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
