"""The application of a worker's own port: health and metrics, and nothing for clients."""

from typing import Any

import orjson

from responses_app.protocol.errors import NotFound

PATHS = ("/health", "/health/detailed", "/metrics")


class WorkerApplication:
    """Passes these paths to the application of a web process."""

    def __init__(self, application: Any) -> None:
        self._application = application

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["path"] in PATHS:
            await self._application(scope, receive, send)
        elif scope["type"] == "http":
            await _refuse(send)
        else:
            await send({"type": "websocket.close"})


async def _refuse(send: Any) -> None:
    error = NotFound("A worker serves only " + ", ".join(PATHS) + ".")
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": orjson.dumps(error.body())})
