"""Errors of aiohttp as those of the HTTP client that the SDK knows."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import aiohttp
import httpx2


@contextmanager
def httpx_errors() -> Iterator[None]:
    """The SDK knows the errors of its own HTTP client."""
    try:
        yield
    except (aiohttp.ClientError, OSError) as error:
        raise as_httpx(error) from error


def as_httpx(error: Exception) -> httpx2.TransportError:
    """Without addresses, which clients would see."""
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return httpx2.ConnectTimeout("the connection took too long")
    if isinstance(error, TimeoutError):
        return httpx2.WriteTimeout("the request was not taken")
    if isinstance(error, aiohttp.ClientConnectorError):
        return httpx2.ConnectError(_reason(error.os_error))
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return httpx2.ProxyError(f"the proxy answered {error.status}")
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return httpx2.RemoteProtocolError("the server closed the connection")
    if isinstance(error, OSError):
        return httpx2.ReadError(_reason(error))
    if isinstance(error, aiohttp.ClientPayloadError):
        return httpx2.RemoteProtocolError("the connection was closed within the answer")
    if isinstance(error, aiohttp.ClientResponseError):
        return httpx2.RemoteProtocolError(error.message.partition("\n")[0])
    return httpx2.UnsupportedProtocol(type(error).__name__)


def _reason(error: OSError) -> str:
    if error.errno and error.errno > 0:
        return os.strerror(error.errno)
    return error.strerror or str(error) or type(error).__name__
