"""OpenAI's SDK as the client of a model's server: connections, time limits, errors, the raw stream."""

import asyncio
import math
import re
import socket
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import httpx2
import openai
from openai import AsyncOpenAI

from gateway_app.agent.events import ModelFailed
from gateway_app.config.presets.facts import Preset
from gateway_app.config.presets.registry import PRESETS
from gateway_app.providers.openai.errors import MAX_MESSAGE_CHARS, refusal
from gateway_app.providers.openai.sse import (
    Event,
    EventSplitter,
    WholeAnswer,
    cut_off,
    parse,
)

Opening = AbstractAsyncContextManager[openai.AsyncAPIResponse[Any]]

# Below the idle limit of the usual proxies, so that they rarely close first.
KEEPALIVE_EXPIRY_SECS = 30.0
# The pool checks each of them, for 25 µs, at the start and end of every request.
MAX_IDLE_CONNECTIONS = 32
# An answer that is not read to its end costs the connection; waiting for a slow server costs more.
DRAIN_SECS = 0.25
MIN_REDACTED_CHARS = 4  # a shorter key is no secret, and its letters are in every message
# A model reads a long context before its first event: above so many tokens, the stale limit is at
# least so many seconds.
STALE_FLOORS_SECS = ((100_000, 300.0), (50_000, 240.0))
FRESH_CONNECTION = {"Connection": "close"}  # headers of a request with a connection of its own
_CREDENTIALS = re.compile(r"\b(?:(?:Bearer|Basic)\s+[^\s\"',}]+|sk-[\w*-]{6,})", re.IGNORECASE)


@dataclass(frozen=True)
class Upstream:
    """Where a model is, and how it is reached."""

    name: str  # of the preset
    model: str
    base_url: str = ""  # empty: the preset's
    api_key: str = field(default="", repr=False)
    api_mode: str = "chat_completions"
    # See config.model_options; a header may be a secret.
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    connect_secs: float = 10
    write_secs: float = 30
    read_secs: float = 60  # without a byte, after the first one
    stale_secs: float = 180  # without an event, counted from the request

    @property
    def preset(self) -> Preset:
        return PRESETS[self.name]

    @property
    def is_openai(self) -> bool:
        return self.name == "openai"

    def with_options(self, body: dict[str, Any], limit_field: str) -> dict[str, Any]:
        """The body with the options of the model, where the request leaves them open."""
        defaults: dict[str, Any] = {}
        if "temperature" in self.options:
            defaults["temperature"] = self.options["temperature"]
        if "max_tokens" in self.options:
            defaults[limit_field] = self.options["max_tokens"]
        extra_body: dict[str, Any] = self.options.get("extra_body", {})
        return defaults | body | extra_body

    def stale_limit_secs(self, tokens: int) -> float:
        for above_tokens, floor_secs in STALE_FLOORS_SECS:
            if tokens > above_tokens:
                return max(self.stale_secs, floor_secs)
        return self.stale_secs


class UpstreamClient:
    """Connections to one upstream, kept open between the calls."""

    def __init__(self, upstream: Upstream) -> None:
        self.upstream = upstream
        self.sdk = _sdk(upstream)
        self.headers: dict[str, Any] = dict(upstream.options.get("extra_headers") or {})
        if not upstream.api_key:
            self.headers["Authorization"] = openai.Omit()
        elif upstream.preset.key_header:
            self.headers[upstream.preset.key_header] = upstream.api_key

    async def aclose(self) -> None:
        await self.sdk.close()

    async def events(
        self,
        opening: Opening,
        is_last: Callable[[Event], bool],
        tokens: int = 0,
        is_streamed: bool = True,
    ) -> AsyncGenerator[Event]:
        """The events of an answer up to its last; closing the generator closes the answer at once."""
        deadline = _Deadline(self.upstream, tokens)
        try:
            async with AsyncExitStack() as stack:
                async with deadline.limit():
                    answer = await stack.enter_async_context(opening)
                    whole = await self._whole(answer, is_streamed)
                if whole is not None:
                    yield whole
                    return
                splitter = EventSplitter()
                chunks = answer.iter_bytes()
                is_over = False
                while not is_over:
                    async with deadline.limit():
                        chunk = await anext(chunks, None)
                    if chunk is None:
                        is_over = True
                        frames = splitter.end()
                    else:
                        frames = splitter.feed(chunk)
                    for data in frames:
                        if data == b"[DONE]":
                            await _drain(chunks)
                            return
                        event = parse(data)
                        yield event
                        if is_last(event):
                            await _drain(chunks)
                            return
                    deadline.extend(had_events=bool(frames))
        except TimeoutError:
            raise deadline.failure() from None
        except openai.OpenAIError as error:
            raise self._failure(error) from None
        except (httpx2.HTTPError, OSError) as error:
            raise cut_off(str(error) or type(error).__name__) from None

    async def _whole(
        self, answer: openai.AsyncAPIResponse[Any], is_streamed: bool
    ) -> WholeAnswer | None:
        if "json" not in answer.headers.get("content-type", ""):
            return None
        body = parse(await answer.read())
        if is_streamed and (self.upstream.is_openai or not {"choices", "output"} & body.keys()):
            raise ModelFailed("The model's server did not answer with a stream of events.")
        return WholeAnswer(body)

    def redacted(self, failure: ModelFailed) -> ModelFailed:
        failure.message = self.redact(failure.message)
        failure.args = (failure.message,)
        return failure

    def redact(self, message: str) -> str:
        key = self.upstream.api_key
        if len(key) >= MIN_REDACTED_CHARS:
            message = message.replace(key, "[redacted]")
        return _CREDENTIALS.sub("[redacted]", message)[:MAX_MESSAGE_CHARS]

    def _failure(self, error: openai.OpenAIError) -> ModelFailed:
        if isinstance(error, openai.APIStatusError):
            return refusal(error)
        if isinstance(error, openai.APITimeoutError) and isinstance(
            error.__cause__, httpx2.ConnectTimeout
        ):
            message = f"The model's server was not reached within {self.upstream.connect_secs:g} s."
        elif isinstance(error, openai.APITimeoutError):
            message = f"The model's server took no data for {self.upstream.write_secs:g} s."
        else:
            message = f"The model's server cannot be reached: {error.__cause__ or error}"
        return ModelFailed(message, is_transient=isinstance(error, openai.APIConnectionError))


class _Deadline:
    """When to stop waiting; the time that this process takes between two reads does not count."""

    def __init__(self, upstream: Upstream, tokens: int) -> None:
        self._now = asyncio.get_running_loop().time
        self._upstream = upstream
        self._stale_secs = upstream.stale_limit_secs(tokens)
        self._stale_at = self._now() + self._stale_secs
        self._silent_at = math.inf
        self._has_received = False

    def limit(self) -> asyncio.Timeout:
        if self._has_received:
            self._silent_at = self._now() + self._upstream.read_secs
        return asyncio.timeout_at(min(self._stale_at, self._silent_at))

    def extend(self, *, had_events: bool) -> None:
        self._has_received = True
        if had_events:
            self._stale_at = self._now() + self._stale_secs

    def failure(self) -> ModelFailed:
        if self._silent_at < self._stale_at:
            return cut_off(f"no data for {self._upstream.read_secs:g} s")
        return cut_off(f"no event for {self._stale_secs:g} s")


class _Transport(httpx2.AsyncBaseTransport):
    """Connections that are reused, and new ones for retries: a reused one may be dead."""

    def __init__(self, limits: httpx2.Limits) -> None:
        options = list(_socket_options())
        verify = _ssl_context()
        none_kept = httpx2.Limits(max_connections=None, max_keepalive_connections=0)
        self._kept = httpx2.AsyncHTTPTransport(verify=verify, limits=limits, socket_options=options)
        self._fresh = httpx2.AsyncHTTPTransport(
            verify=verify, limits=none_kept, socket_options=options
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.headers.get("connection") == FRESH_CONNECTION["Connection"]:
            return await self._fresh.handle_async_request(request)
        return await self._kept.handle_async_request(request)

    async def aclose(self) -> None:
        await self._kept.aclose()
        await self._fresh.aclose()


def _sdk(upstream: Upstream) -> AsyncOpenAI:
    limits = httpx2.Limits(
        max_connections=None,
        max_keepalive_connections=MAX_IDLE_CONNECTIONS,
        keepalive_expiry=KEEPALIVE_EXPIRY_SECS,
    )
    # A mount instead of the transport argument, which would make HTTPS_PROXY and its like ignored.
    # There is no read timeout here: it would also limit the wait for the first byte.
    http = httpx2.AsyncClient(
        mounts={"all://": _Transport(limits)},
        verify=_ssl_context(),
        limits=limits,
        timeout=httpx2.Timeout(None, connect=upstream.connect_secs, write=upstream.write_secs),
    )
    sdk = AsyncOpenAI(
        # Without a key the SDK sends OPENAI_API_KEY, which is not meant for any other server.
        api_key=upstream.api_key or "none",
        base_url=upstream.base_url or upstream.preset.base_url,
        default_query=upstream.options.get("query"),
        max_retries=0,
        timeout=http.timeout,
        http_client=http,
    )
    if not upstream.is_openai:
        sdk.organization = sdk.project = None
    return sdk


@cache
def _ssl_context() -> ssl.SSLContext:
    """It takes 20 ms to read the certificates."""
    return httpx2.create_ssl_context()


def _socket_options() -> Iterator[tuple[int, int, int]]:
    """A peer that vanished without closing is noticed after about a minute."""
    yield socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1
    for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, name):
            yield socket.IPPROTO_TCP, getattr(socket, name), value


async def _drain(chunks: AsyncIterator[bytes]) -> None:
    try:
        async with asyncio.timeout(DRAIN_SECS):
            async for _ in chunks:
                pass
    except (TimeoutError, httpx2.HTTPError):
        return
