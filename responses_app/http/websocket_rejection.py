"""A WebSocket that is rejected before it opens: an HTTP error, where the server can send one."""

from typing import Any

import orjson
from channels.consumer import AsyncConsumer
from channels.exceptions import StopConsumer

from responses_app.protocol.errors import ApiError, NotFound

EXTENSION = "websocket.http.response"


async def reject_handshake(error: ApiError, scope: dict[str, Any], send: Any) -> None:
    if EXTENSION not in (scope.get("extensions") or {}):
        await send({"type": "websocket.close"})  # servers turn this into an HTTP 403
        return
    headers = [(b"content-type", b"application/json")]
    for name, value in error.headers.items():
        headers.append((name.lower().encode(), value.encode()))
    await send({"type": f"{EXTENSION}.start", "status": error.status, "headers": headers})
    await send({"type": f"{EXTENSION}.body", "body": orjson.dumps(error.body())})


class UnknownSocketPath(AsyncConsumer):
    channel_layer_alias = "none"

    async def websocket_connect(self, message: dict[str, Any]) -> None:
        path = self.scope["path"]
        error = NotFound(f"There is no WebSocket at {path}.", code="unknown_path")
        await reject_handshake(error, self.scope, self.send)
        raise StopConsumer
