"""Pages of the public web: allowed hosts alone, and no address of a private network.

The name of a host is resolved once for each connection. The connection goes to an address that was
checked, so a name that resolves to something else a moment later (DNS rebinding) changes nothing.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, urljoin, urlsplit

import httpcore2

from gateway_app.tools.support.public_addresses import Address, is_public

MAX_BYTES = 2_000_000
MAX_SECS = 20
MAX_HOPS = 5  # redirects
MAX_URL_CHARS = 4000
_PORTS = {"http": 80, "https": 443}
_REDIRECTS = (301, 302, 303, 307, 308)

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


class FetchRefused(ValueError):
    """An address may not be fetched, or can't be; the message is for the model."""


@dataclass(frozen=True)
class Page:
    url: str  # behind all redirects
    status: int
    content_type: str  # in lower case, with its parameters
    body: bytes


async def resolve(host: str, port: int) -> Sequence[str]:
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]


class CheckedBackend(httpcore2.AsyncNetworkBackend):
    """Opens connections to addresses that may be reached, and to no other."""

    def __init__(self, resolve: Resolve, may_reach: Callable[[Address], bool]) -> None:
        self._resolve = resolve
        self._may_reach = may_reach
        self._inner = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 (the interface has it)
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        addresses = await self._checked(host, port)
        failure: Exception | None = None
        for address in addresses:
            try:
                return await self._inner.connect_tcp(
                    address, port, timeout, local_address, socket_options
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
        raise failure or FetchRefused(f"{host} has no address")

    async def connect_unix_socket(self, *args: Any, **options: Any) -> httpcore2.AsyncNetworkStream:
        raise FetchRefused("only http and https addresses can be fetched")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def _checked(self, host: str, port: int) -> list[str]:
        try:
            found = await self._resolve(host, port)
        except (OSError, UnicodeError):
            raise FetchRefused(f"the name {host} can't be resolved") from None
        addresses: dict[str, None] = {}
        for text in found:
            if not self._may_reach(ipaddress.ip_address(text.partition("%")[0])):
                # One private address among public ones is reason enough.
                raise FetchRefused(f"{host} is in a private network, which can't be fetched from")
            addresses[text] = None
        return list(addresses)


class PublicWeb:
    """Reads pages of the allowed hosts. Proxies of the environment are not used: they resolve names."""

    def __init__(
        self,
        hosts: Sequence[str],
        resolve: Resolve = resolve,
        may_reach: Callable[[Address], bool] = is_public,
    ) -> None:
        self._hosts = hosts
        self._resolve = resolve
        self._may_reach = may_reach

    async def get(self, url: str, max_secs: float = MAX_SECS) -> Page:
        """Follows redirects; each hop is checked like the first one."""
        backend = CheckedBackend(self._resolve, self._may_reach)
        try:
            async with (
                asyncio.timeout(max_secs),
                httpcore2.AsyncConnectionPool(network_backend=backend) as pool,
            ):
                for _ in range(MAX_HOPS + 1):
                    found = await self._hop(pool, url)
                    if isinstance(found, Page):
                        return found
                    url = urljoin(url, found)
        except TimeoutError:
            raise FetchRefused(f"{url} did not answer within {max_secs:g} seconds") from None
        except (
            httpcore2.NetworkError,
            httpcore2.ProtocolError,
            httpcore2.TimeoutException,
        ) as error:
            raise FetchRefused(f"{url} can't be read: {error or type(error).__name__}") from error
        raise FetchRefused(f"more than {MAX_HOPS} redirects")

    async def _hop(self, pool: httpcore2.AsyncConnectionPool, url: str) -> Page | str:
        """The page, or the address that it redirects to."""
        target, headers = self._request(url)
        async with pool.stream("GET", target, headers=headers) as response:
            fields: dict[str, str] = {}
            for name, value in response.headers:
                fields[name.decode("latin-1").lower()] = value.decode("latin-1")
            if response.status in _REDIRECTS and fields.get("location"):
                return fields["location"]
            if fields.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
                # Unpacking could turn kilobytes into gigabytes.
                raise FetchRefused(f"{url} is compressed, although plain data was asked for")
            body = bytearray()
            async for chunk in response.aiter_stream():
                body += chunk
                if len(body) > MAX_BYTES:
                    raise FetchRefused(f"{url} has more than {MAX_BYTES} bytes")
            kind = fields.get("content-type", "").lower()
            return Page(url, response.status, kind, bytes(body))

    def _request(self, url: str) -> tuple[httpcore2.URL, list[tuple[str, str]]]:
        parts, host, port = self._checked(url)
        path = parts.path or "/"
        if parts.query:
            path += f"?{parts.query}"
        target = httpcore2.URL(
            scheme=parts.scheme.encode(), host=host.encode(), port=port, target=path.encode()
        )
        named = host
        if ":" in host:
            named = f"[{host}]"
        if port != _PORTS[parts.scheme]:
            named += f":{port}"
        return target, [
            ("Host", named),
            ("User-Agent", "hermes-site"),
            ("Accept", "text/html, text/*, application/json;q=0.9, */*;q=0.1"),
            ("Accept-Encoding", "identity"),
        ]

    def _checked(self, url: str) -> tuple[SplitResult, str, int]:
        """The parts of an address, its host and its port, if it may be fetched."""
        if len(url) > MAX_URL_CHARS or not url.isascii() or not url.isprintable() or " " in url:
            raise FetchRefused("the address must be printable ASCII; percent-encode the rest")
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise FetchRefused(f"the address is malformed: {error}") from None
        if parts.scheme not in _PORTS or not parts.hostname:
            raise FetchRefused("only http and https addresses can be fetched")
        if parts.username is not None or "\\" in url:
            raise FetchRefused("an address with a user name or a backslash can't be fetched")
        host = parts.hostname.rstrip(".")
        if not self._is_allowed(host, port):
            raise FetchRefused(f"{parts.netloc} is not one of the hosts that may be fetched")
        return parts, host, port or _PORTS[parts.scheme]

    def _is_allowed(self, host: str, port: int | None) -> bool:
        """An entry without a port means the usual ports."""
        is_usual = port in (None, *_PORTS.values())
        for entry in self._hosts:
            pattern, _, entry_port = entry.partition(":")
            if entry_port and entry_port != str(port):
                continue
            if not entry_port and not is_usual:
                continue
            if pattern in ("*", host):
                return True
            if pattern.startswith("*.") and host.endswith(pattern[1:]):
                return True
        return False
