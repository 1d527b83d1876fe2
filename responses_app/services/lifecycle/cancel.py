"""Cancel: a request to whoever runs the response; the owner settles it."""

from concurrent.futures import Future

from django.contrib.auth.models import User

from responses_app.database import database
from responses_app.dispatch import get_dispatcher
from responses_app.eventlog import Tail
from responses_app.models import Response
from responses_app.protocol.status import OnDisconnect
from responses_app.services.audit import record


def request_cancel(
    response_id: str, actor: str = "", operator: User | None = None
) -> "Future[bool]":
    """Record the wish and whose it is, and hint at it; True when it was still running and nobody had asked before."""

    def ask() -> bool:
        is_asked = Response.objects.request_cancel(response_id, actor)
        if is_asked:
            record(operator, Response(pk=response_id), "Cancellation requested.")
        return is_asked

    return database.submit(
        ask,
        lambda _: get_dispatcher().cancel(response_id),
    )


def leave(response_id: str, tail: Tail, reader: str) -> None:
    """A client is gone; what ends with its clients ends when that was the last.

    Clients come and go in the writer's thread, so that nobody can join what is just being cancelled.
    """

    def look_around() -> bool:
        tail.clients.discard(reader)
        ends_with_clients = Response.objects.filter(on_disconnect=OnDisconnect.CANCEL)
        return not tail.clients and ends_with_clients.request_cancel(response_id)

    def tell(is_cancelled: bool) -> None:
        if is_cancelled:
            get_dispatcher().cancel(response_id)

    database.write_later(look_around, tell)
