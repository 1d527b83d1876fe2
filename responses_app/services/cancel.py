"""Cancel: a request to whoever runs the response; the owner settles it."""

from concurrent.futures import Future

from responses_app.dispatch import get_dispatcher
from responses_app.eventlog import event_store
from responses_app.models import Response


def request_cancel(response_id: str) -> "Future[bool]":
    """Record the wish and hint at it; True when it was still running and nobody had asked before."""
    return event_store.submit(
        lambda: Response.objects.request_cancel(response_id),
        lambda _: get_dispatcher().cancel(response_id),
    )
