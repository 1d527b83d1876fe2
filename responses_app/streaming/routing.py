"""Which requests the streaming consumers take; Django has the rest."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs

from django.urls import Resolver404, resolve
from django.views import View

from responses_app.http.websocket_rejection import reject_handshake
from responses_app.protocol.errors import InvalidRequest, MethodNotAllowed, NotFound
from responses_app.requests.headers import read_flag
from responses_app.streaming.compact import CompactConsumer
from responses_app.streaming.create import CreateResponseConsumer
from responses_app.streaming.resume import ResumeResponseConsumer
from responses_app.streaming.websocket.consumer import ResponsesSocket

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
AsgiApp = Callable[[dict[str, Any], Any, Any], Awaitable[None]]


@dataclass(frozen=True)
class StreamingRoute:
    method: str
    path: re.Pattern[str]
    app: AsgiApp
    needs_stream_flag: bool = False

    def match(self, scope: dict[str, Any]) -> dict[str, str] | None:
        found = self.path.fullmatch(scope["path"]) if scope["method"] == self.method else None
        if found is None or (self.needs_stream_flag and not _asks_for_stream(scope)):
            return None
        return found.groupdict()


def _asks_for_stream(scope: dict[str, Any]) -> bool:
    query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    try:
        return read_flag(query.get("stream", [None])[-1], "stream")
    except InvalidRequest:
        return False  # the plain view reads the same flag and says what is wrong with it


RESPONSES_ROUTES = (
    StreamingRoute("POST", re.compile(r"/v1/responses"), CreateResponseConsumer.as_asgi()),
    StreamingRoute("POST", re.compile(r"/v1/responses/compact"), CompactConsumer.as_asgi()),
    StreamingRoute(
        "GET",
        re.compile(r"/v1/responses/(?P<response_id>resp_[^/]*)"),
        ResumeResponseConsumer.as_asgi(),
        needs_stream_flag=True,
    ),
)


SOCKETS: dict[str, AsgiApp] = {"/v1/responses": ResponsesSocket.as_asgi()}


def allowed_methods(path: str, routes: Sequence[StreamingRoute]) -> list[str]:
    """What a path of the API takes, from consumers and views together; empty for other paths."""
    view = api_view(path)
    if view is None:
        return []
    streamed = {route.method for route in routes if route.path.fullmatch(path)}
    plain = {method for method in METHODS if hasattr(view, method.lower())}
    head = {"HEAD"} if "GET" in plain else set()
    return sorted({*streamed, *plain, *head, "OPTIONS"})


def api_view(path: str) -> type[View] | None:
    """Pages are functions: they answer other methods by themselves."""
    try:
        found = resolve(path).func
    except Resolver404:
        return None
    view: type[View] | None = getattr(found, "view_class", None)
    return view


async def _answer_options(allowed: Sequence[str], send: Any) -> None:
    """Without a key: what a path takes is in the public document."""
    headers = [(b"allow", ", ".join(allowed).encode())]
    start = {"type": "http.response.start", "status": HTTPStatus.NO_CONTENT, "headers": headers}
    await send(start)
    await send({"type": "http.response.body", "body": b""})


class StreamingRouter:
    """An ASGI application: the first route that matches, else the fallback."""

    def __init__(self, routes: Sequence[StreamingRoute], fallback: AsgiApp) -> None:
        self.routes = routes
        self.fallback = fallback

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        for route in self.routes:
            args = route.match(scope)
            if args is not None:
                return await route.app({**scope, "url_route": {"kwargs": args}}, receive, send)
        allowed = allowed_methods(scope["path"], self.routes)
        if allowed and scope["method"] == "OPTIONS":
            return await _answer_options(allowed, send)
        if allowed and scope["method"] not in allowed:
            raise MethodNotAllowed(scope["method"], ", ".join(allowed))
        # Discovery lists every endpoint, and half of them are here.
        return await self.fallback({**scope, "streaming_routes": self.routes}, receive, send)


class SocketRouter:
    """An ASGI application: WebSockets by their path."""

    def __init__(self, sockets: Mapping[str, AsgiApp]) -> None:
        self.sockets = sockets

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        app = self.sockets.get(scope["path"])
        if app is not None:
            return await app(scope, receive, send)
        error = NotFound(f"There is no WebSocket at {scope['path']}.", code="unknown_path")
        return await reject_handshake(error, scope, send)
