"""``/live/{response_id}/events``: the log of a response for the live page."""

import re
from collections.abc import Collection

from gateway_app.operations.dashboard.staff import VIEW, may_view, user_of_cookies
from responses_app.database import database
from responses_app.protocol.errors import Unauthenticated
from responses_app.requests.headers import read_cursor
from responses_app.services.lookup import any_log
from responses_app.streaming.base import HttpConsumer
from responses_app.streaming.pump import pump
from responses_app.streaming.renderers import TimedLogView
from responses_app.streaming.revocation import Credential
from responses_app.streaming.routing import StreamingRoute


def _viewers(cookies: Collection[str]) -> set[str]:
    """For a reader thread: sessions and permissions are in the database."""
    return {header for header in cookies if may_view(user_of_cookies(header))}


class LiveConsumer(HttpConsumer):
    """The log for a browser of the staff, which logs in by cookie instead of by key."""

    async def respond(self, body: bytes) -> None:
        cookies = self.header("cookie") or ""
        if not await database.read(_viewers, [cookies]):
            raise Unauthenticated(
                f"Log in as staff with the permission {VIEW} to watch a response."
            )
        self.end_when_revoked(Credential(_viewers, cookies))
        row = await database.read(any_log, self.path_args["response_id"])
        seen = read_cursor(self.header("last-event-id"), "Last-Event-ID")
        await self.start_stream([])
        if seen is None:
            seen = -1
        await pump(self, row.pk, seen, TimedLogView())


LIVE_ROUTES = (
    StreamingRoute(
        "GET", re.compile(r"/live/(?P<response_id>[^/]+)/events"), LiveConsumer.as_asgi()
    ),
)
