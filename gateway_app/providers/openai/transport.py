"""Connections to a model's server, with or without a proxy, that notice a peer that is gone."""

import socket
import ssl
from collections.abc import Mapping
from contextlib import aclosing
from functools import cache
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx2

# Below the idle limit of the usual proxies, so that they rarely close first.
KEEPALIVE_EXPIRY_SECS = 30.0
# The pool checks each of them, for 25 µs, at the start and end of every request.
MAX_IDLE_CONNECTIONS = 32
# The SDK reads an error to its end, however long it is; only its first characters are of use.
MAX_ERROR_BYTES = 1_000_000
FRESH_CONNECTION = {"Connection": "close"}  # headers of a request with a connection of its own
# An idle peer is probed after KEEPIDLE seconds, then KEEPCNT times every KEEPINTVL seconds. Without
# the last option, data that the peer does not acknowledge is sent again for a quarter of an hour.
_PROBES = {
    "TCP_KEEPIDLE": 30,
    "TCP_KEEPINTVL": 10,
    "TCP_KEEPCNT": 3,
    "TCP_USER_TIMEOUT": 60_000,  # milliseconds
}


class Transport(httpx2.AsyncBaseTransport):
    """Connections that are reused, and new ones for retries: a reused one may be dead."""

    def __init__(self, base_url: str) -> None:
        limits = httpx2.Limits(
            max_connections=None,
            max_keepalive_connections=MAX_IDLE_CONNECTIONS,
            keepalive_expiry=KEEPALIVE_EXPIRY_SECS,
        )
        none_kept = httpx2.Limits(max_connections=None, max_keepalive_connections=0)
        proxy = proxy_for(base_url)
        self._kept = _http_transport(proxy, limits)
        self._fresh = _http_transport(proxy, none_kept)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        request.extensions["trace"] = _probe_new_connection
        transport = self._kept
        if request.headers.get("connection") == FRESH_CONNECTION["Connection"]:
            transport = self._fresh
        response = await transport.handle_async_request(request)
        if response.is_success:
            return response
        return await with_limited_error(response)

    async def aclose(self) -> None:
        await self._kept.aclose()
        await self._fresh.aclose()


async def with_limited_error(response: httpx2.Response) -> httpx2.Response:
    """The same error, decompressed and read; the limit is of the decompressed bytes."""
    body = bytearray()
    try:
        async with aclosing(response.aiter_bytes()) as pieces:
            async for piece in pieces:
                body += piece
                if len(body) > MAX_ERROR_BYTES:
                    break
    except httpx2.HTTPError:
        pass  # the status counts, also where the rest of its explanation is lost
    headers = response.headers.copy()
    for name in ("content-encoding", "content-length", "transfer-encoding"):
        headers.pop(name, None)
    return httpx2.Response(
        response.status_code,
        headers=headers,
        content=bytes(body[:MAX_ERROR_BYTES]),
        extensions=response.extensions,
    )


def proxy_for(base_url: str) -> str | None:
    """From HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY.

    The HTTP client would read them by itself, and make connections of its own, without probes.
    """
    address = urlsplit(base_url)
    if proxy_bypass(address.netloc.rpartition("@")[2]):
        return None
    proxies = getproxies()
    proxy = proxies.get(address.scheme) or proxies.get("all")
    if not proxy:
        return None
    if "://" not in proxy:
        return f"http://{proxy}"
    return proxy


async def _probe_new_connection(step: str, info: Mapping[str, Any]) -> None:
    """A peer that vanished without closing is noticed after about a minute.

    The transports take socket options too, and ignore them where there is a proxy.
    """
    if not step.endswith("connect_tcp.complete"):
        return
    connection: socket.socket = info["return_value"].get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _PROBES.items():
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _http_transport(proxy: str | None, limits: httpx2.Limits) -> httpx2.AsyncHTTPTransport:
    return httpx2.AsyncHTTPTransport(verify=_ssl_context(), limits=limits, proxy=proxy)


@cache
def _ssl_context() -> ssl.SSLContext:
    """It takes 20 ms to read the certificates."""
    return httpx2.create_ssl_context()
