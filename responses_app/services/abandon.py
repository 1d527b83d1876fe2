"""Abandon: end a response that nobody works on, as incomplete, without asking any model."""

from responses_app.eventlog.segments import read_whole
from responses_app.events import decode_frames
from responses_app.output import OutputBuilder
from responses_app.services.claim import claim
from responses_app.services.settle import settle
from responses_app.states import IncompleteReason, Status


def abandon(response_id: str) -> bool:
    """In the caller's transaction: what was said is kept; False when somebody works on it after all."""
    claimed = claim(response_id)
    if claimed is None:
        return False
    row = claimed.row
    history = decode_frames(segment.data for segment in read_whole(response_id))
    builder = OutputBuilder(response_id, history)
    if row.cancel_requested_at is not None:
        builder.finish(Status.CANCELLED)
    else:
        builder.finish(Status.INCOMPLETE, incomplete={"reason": str(IncompleteReason.SERVER_INTERRUPTED)})
    settle(row, claimed.numbering.seal(builder.take()), builder.snapshot.body())
    return True
