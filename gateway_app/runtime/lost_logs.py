"""Ends the logs of unstored responses whose rows another process has settled."""

from gateway_app.runtime.resumption import attempts_in
from responses_app.database import database
from responses_app.eventlog import Numbering, stamped
from responses_app.eventlog.store import event_store
from responses_app.models import Response
from responses_app.protocol.status import IncompleteReason, Status


async def end_lost_log(response_id: str) -> None:
    """End the log for its readers when another process settled the row before a turn here began.

    Only this process has the log: without a terminal event its client would wait for ever.
    """
    tail = event_store.tails.find(response_id)
    if tail is None or not tail.is_volatile:
        return
    newest = tail.newest
    if newest is None or newest.is_final:
        return
    if await database.read_with_retry(_is_open, response_id):
        return
    builder = attempts_in(response_id, tail.whole()).builder
    reason = {"reason": str(IncompleteReason.SERVER_INTERRUPTED)}
    builder.finish(Status.INCOMPLETE, incomplete=reason)
    numbering = Numbering(response_id, newest.attempt)
    numbering.follow(newest)
    event_store.publish_final(tail, stamped(numbering.seal(builder.take())))


def _is_open(response_id: str) -> bool:
    return Response.objects.open().filter(pk=response_id).exists()
