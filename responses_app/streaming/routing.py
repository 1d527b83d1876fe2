"""Which requests the streaming consumers serve; Django has the rest."""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from channels.routing import URLRouter
from django.urls import Resolver404, path, re_path, resolve
from django.views import View

from responses_app.http.websocket_rejection import UnknownSocketPath
from responses_app.protocol.errors import InvalidRequest, MethodNotAllowed
from responses_app.requests.headers import read_flag
from responses_app.streaming.base import query_param
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
        if scope["method"] != self.method:
            return None
        found = self.path.fullmatch(scope["path"])
        if found is None or (self.needs_stream_flag and not _asks_for_stream(scope)):
            return None
        return found.groupdict()


def _asks_for_stream(scope: dict[str, Any]) -> bool:
    try:
        return read_flag(query_param(scope, "stream"), "stream")
    except InvalidRequest:
        return False  # the plain view reads the same flag and reports the error


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
SOCKET_ROUTES = [path("v1/responses", ResponsesSocket.as_asgi())]
# A router of Channels raises an error for a path it does not know; clients need a 404.
socket_router = URLRouter([*SOCKET_ROUTES, re_path("", UnknownSocketPath.as_asgi())])


def allowed_methods(path: str, routes: Sequence[StreamingRoute]) -> list[str]:
    """The methods of an API path, of consumers and views together; empty for other paths."""
    view = api_view(path)
    if view is None:
        return []
    allowed = {"OPTIONS"}
    for route in routes:
        if route.path.fullmatch(path):
            allowed.add(route.method)
    for method in METHODS:
        if hasattr(view, method.lower()):
            allowed.add(method)
    if hasattr(view, "get"):
        allowed.add("HEAD")
    return sorted(allowed)


def api_view(path: str) -> type[View] | None:
    """The class of a view; pages are functions, which handle other methods themselves."""
    try:
        found = resolve(path).func
    except Resolver404:
        return None
    view: type[View] | None = getattr(found, "view_class", None)
    return view


async def _send_options(allowed: Sequence[str], send: Any) -> None:
    """Needs no key: the methods of a path are in the public OpenAPI document."""
    headers = [(b"allow", ", ".join(allowed).encode())]
    start = {"type": "http.response.start", "status": HTTPStatus.NO_CONTENT, "headers": headers}
    await send(start)
    await send({"type": "http.response.body", "body": b""})


class StreamingRouter:
    """An ASGI application: the first route that matches, else the fallback.

    Channels' ``URLRouter`` knows neither methods nor a fallback.
    """

    def __init__(self, routes: Sequence[StreamingRoute], fallback: AsgiApp) -> None:
        self.routes = routes
        self.fallback = fallback

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        for route in self.routes:
            args = route.match(scope)
            if args is not None:
                return await route.app(scope | {"url_route": {"kwargs": args}}, receive, send)
        allowed = allowed_methods(scope["path"], self.routes)
        if allowed and scope["method"] == "OPTIONS":
            return await _send_options(allowed, send)
        if allowed and scope["method"] not in allowed:
            raise MethodNotAllowed(scope["method"], ", ".join(allowed))
        # Discovery lists the streaming endpoints, too.
        return await self.fallback(scope | {"streaming_routes": self.routes}, receive, send)
