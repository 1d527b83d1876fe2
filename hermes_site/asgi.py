"""The ASGI application: one edge, two doors, and the runner behind them."""

import os
from typing import Any

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hermes_site.settings")
django_app = get_asgi_application()  # sets Django up: what follows imports models

from gateway_app.runtime.start import runtime  # noqa: E402
from responses_app.edge import Edge  # noqa: E402
from responses_app.streaming.routing import RESPONSES_ROUTES, StreamingRouter  # noqa: E402

http = Edge(StreamingRouter(RESPONSES_ROUTES, fallback=django_app))


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    if scope["type"] == "lifespan":
        return await _lifespan(receive, send)
    runtime.ensure_started()  # plain daphne has neither lifespan nor a start hook
    if scope["type"] == "http":
        await http(scope, receive, send)
    else:
        await send({"type": "websocket.close"})


async def _lifespan(receive: Any, send: Any) -> None:
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            runtime.ensure_started()
            await send({"type": "lifespan.startup.complete"})
        else:
            runtime.stop()
            await send({"type": "lifespan.shutdown.complete"})
            return
