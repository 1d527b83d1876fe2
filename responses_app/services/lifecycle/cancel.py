"""Cancel: a request to the process that runs the response; that process settles it."""

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
    """Record the request and its actor; True for the first request while the response runs."""

    def request() -> bool:
        is_first = Response.objects.request_cancel(response_id, actor)
        if is_first:
            record(operator, Response(pk=response_id), "Cancellation requested.")
        return is_first

    def announce(_: bool) -> None:
        get_dispatcher().cancel(response_id)

    return database.submit(request, announce)


def leave(response_id: str, tail: Tail, reader: str) -> None:
    """A client is gone. A response that ends with its clients is cancelled when that was the last.

    Clients come and go in the writer's thread: none can join a response that is being cancelled.
    """

    def remove_client() -> bool:
        tail.clients.discard(reader)
        ends_with_clients = Response.objects.filter(on_disconnect=OnDisconnect.CANCEL)
        return not tail.clients and ends_with_clients.request_cancel(response_id)

    def announce(is_cancelled: bool) -> None:
        if is_cancelled:
            get_dispatcher().cancel(response_id)

    database.write_later(remove_client, announce)
