"""The ASGI application: the middleware, the routes that stream, and Django for everything else."""

import os
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hermes_site.settings")
django.setup(set_prefix=False)  # what follows imports models

from gateway_app.api.chat.routing import CHAT_ROUTES  # noqa: E402
from gateway_app.api.runs.routing import RUNS_ROUTES  # noqa: E402
from gateway_app.api.sessions.routing import SESSIONS_ROUTES  # noqa: E402
from gateway_app.operations.dashboard.live_stream import LIVE_ROUTES  # noqa: E402
from gateway_app.runtime.bootstrap import runtime  # noqa: E402
from gateway_app.runtime.signals import handle_signals  # noqa: E402
from hermes_site.request_handler import RequestHandler  # noqa: E402
from responses_app.http.middleware import RequestMiddleware  # noqa: E402
from responses_app.streaming.routing import RESPONSES_ROUTES, StreamingRouter, socket_router  # noqa: E402

routes = (*RESPONSES_ROUTES, *CHAT_ROUTES, *RUNS_ROUTES, *SESSIONS_ROUTES, *LIVE_ROUTES)
http = RequestMiddleware(StreamingRouter(routes, fallback=RequestHandler()))
websocket = RequestMiddleware(socket_router)


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    if scope["type"] == "lifespan":
        return await _lifespan(receive, send)
    runtime.ensure_started()  # plain daphne has neither lifespan nor a start hook
    if scope["type"] == "http":
        await http(scope, receive, send)
    else:
        await websocket(scope, receive, send)


async def _lifespan(receive: Any, send: Any) -> None:
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            runtime.ensure_started()
            # A server sends lifespan.shutdown only after its streams have ended.
            handle_signals(runtime.begin_drain, is_guest=True)
            await send({"type": "lifespan.startup.complete"})
        else:
            await runtime.drain()
            await send({"type": "lifespan.shutdown.complete"})
            return
