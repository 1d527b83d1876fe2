"""Django's handler, with a thread per request whose database connection always goes back."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from asgiref.sync import ThreadSensitiveContext
from django.core.handlers.asgi import ASGIHandler
from django.db import connections

from responses_app.postgresql.threads import limit_waits

_share_connections = partial(limit_waits, is_pooled=True)


class RequestHandler(ASGIHandler):
    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """When a request is cancelled, Django blocks the event loop until its thread ends.

        The connection of that thread would be lost to the pool.
        """
        thread = ThreadPoolExecutor(1, thread_name_prefix="request", initializer=_share_connections)
        try:
            async with ThreadSensitiveContext(executor=thread):
                await self.handle(scope, receive, send)
        finally:
            thread.submit(connections.close_all)  # behind whatever still runs there
            thread.shutdown(wait=False)
