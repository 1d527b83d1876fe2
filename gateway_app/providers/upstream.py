"""A model's server as OpenAI's SDK reaches it: connections, time limits, errors and the raw event stream."""

import asyncio
import json
import math
import re
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import httpx2
import openai
import orjson
from openai import AsyncOpenAI

from gateway_app.agent.types import ModelFailed, Usage

Event = dict[str, Any]
Opening = AbstractAsyncContextManager[openai.AsyncAPIResponse[Any]]

KEEPALIVE_EXPIRY_SECS = 30.0  # below the idle limit of the usual proxies, so that they rarely close first
MAX_IDLE_CONNECTIONS = 32  # the pool looks at each of them, for 25 µs, at the start and end of every request
DRAIN_SECS = 0.25  # an answer that is not read to its end costs the connection; a server that lingers costs more
MAX_EVENT_BYTES = 32_000_000
MAX_MESSAGE_CHARS = 1000
MIN_REDACTED_CHARS = 4  # a shorter key is no secret, and its letters are in every message
# What the status of a failed response may be called; an upstream's own code is never shown as one of ours.
CODES = frozenset(("rate_limit_exceeded", "invalid_prompt", "invalid_image", "invalid_image_url", "bio_policy"))
_STATUS_CODES = {400: "invalid_prompt", 429: "rate_limit_exceeded"}
_CREDENTIALS = re.compile(r"\b(?:(?:Bearer|Basic)\s+[^\s\"',}]+|sk-[\w*-]{6,})", re.IGNORECASE)


@dataclass(frozen=True)
class Upstream:
    """Where a model is and how to speak to it."""

    name: str  # openai, or custom for a server that only speaks like it
    model: str
    base_url: str = ""  # empty: the SDK's own
    api_key: str = field(default="", repr=False)
    api_mode: str = "chat_completions"
    connect_secs: float = 10
    write_secs: float = 30
    read_secs: float = 60  # without a byte, once the first has come
    stale_secs: float = 180  # without an event, counted from the request

    @property
    def is_openai(self) -> bool:
        return self.name == "openai"


class UpstreamClient:
    """Connections to one upstream, kept open between the calls."""

    def __init__(self, upstream: Upstream) -> None:
        self.upstream = upstream
        self.sdk = _sdk(upstream)
        self.headers: dict[str, Any] = {} if upstream.api_key else {"Authorization": openai.Omit()}

    async def aclose(self) -> None:
        await self.sdk.close()

    async def events(self, opening: Opening, is_last: Callable[[Event], bool] | None = None) -> AsyncGenerator[Event]:
        """The events of an answer up to its last; closing the generator closes the answer at once."""
        patience = _Patience(self.upstream)
        try:
            async with AsyncExitStack() as stack:
                async with patience.limit():
                    answer = await stack.enter_async_context(opening)
                    await _refuse_json(answer)
                splitter, chunks, is_over = EventSplitter(), answer.iter_bytes(), False
                while not is_over:
                    async with patience.limit():
                        chunk = await anext(chunks, None)
                    is_over = chunk is None
                    datas = splitter.end() if chunk is None else splitter.feed(chunk)
                    for data in datas:
                        if data == b"[DONE]":
                            await _drain(chunks)
                            return
                        event = parse(data)
                        yield event
                        if is_last is not None and is_last(event):
                            await _drain(chunks)
                            return
                    patience.renew(had_events=bool(datas))
        except TimeoutError:
            raise patience.failure() from None
        except openai.OpenAIError as error:
            raise self._failure(error) from None
        except (httpx2.HTTPError, OSError) as error:
            raise ModelFailed(f"The model's stream was cut: {self.redact(str(error))}") from None
        except ModelFailed as failure:
            raise ModelFailed(self.redact(failure.message), failure.code) from None

    def redact(self, message: str) -> str:
        key = self.upstream.api_key
        if len(key) >= MIN_REDACTED_CHARS:
            message = message.replace(key, "[redacted]")
        return _CREDENTIALS.sub("[redacted]", message)[:MAX_MESSAGE_CHARS]

    def _failure(self, error: openai.OpenAIError) -> ModelFailed:
        if isinstance(error, openai.APIStatusError):
            status, said = error.status_code, self.redact(_message(error.body) or error.response.reason_phrase)
            if status in (401, 403):
                return ModelFailed(f"upstream_auth_failed: the model's server answered {status}: {said}")
            code = _STATUS_CODES.get(status, "server_error")
            return ModelFailed(f"The model's server answered {status}: {said}", code)
        if isinstance(error, openai.APITimeoutError) and isinstance(error.__cause__, httpx2.ConnectTimeout):
            return ModelFailed(f"The model's server was not reached within {self.upstream.connect_secs:g} s.")
        if isinstance(error, openai.APITimeoutError):
            return ModelFailed(f"The model's server took no data for {self.upstream.write_secs:g} s.")
        return ModelFailed(f"The model's server cannot be reached: {self.redact(str(error.__cause__ or error))}")


class EventSplitter:
    """From the bytes of a body, cut anywhere, to the data of its events."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._ended_with_cr = False

    def feed(self, chunk: bytes) -> list[bytes]:
        if self._ended_with_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        self._ended_with_cr = chunk.endswith(b"\r")
        if b"\r" in chunk:
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        searched = max(len(self._buffer) - 1, 0)
        self._buffer += chunk
        if self._buffer.find(b"\n\n", searched) < 0:
            if len(self._buffer) > MAX_EVENT_BYTES:
                raise ModelFailed("The model's server sent an event without an end.")
            return []
        *frames, rest = self._buffer.split(b"\n\n")
        self._buffer = rest
        return [data for frame in frames if (data := _data_of(bytes(frame)))]

    def end(self) -> list[bytes]:
        """Some servers leave out the blank line after their last event."""
        return self.feed(b"\n\n")


def parse(data: bytes) -> Event:
    try:
        event = orjson.loads(data)
    except orjson.JSONDecodeError:
        event = _parse_leniently(data)
    if not isinstance(event, dict):
        raise ModelFailed("The model's server sent an event that is not an object.")
    if event.get("error") or event.get("type") == "error":
        raise failure_in(event.get("error") or event)
    return event


def failure_in(error: Any) -> ModelFailed:
    """What an error inside a stream or a failed response says."""
    code = error.get("code") if isinstance(error, dict) else None
    if code in (400, 429):
        code = _STATUS_CODES[code]
    known = code if isinstance(code, str) and code in CODES else "server_error"
    return ModelFailed(f"The model failed: {_message(error) or 'its server does not say why.'}", known)


def read_usage(raw: Any) -> Usage:
    """The counts of either protocol; what is missing or odd counts as zero."""
    given = _mapping(raw)
    inputs = _mapping(given.get("input_tokens_details") or given.get("prompt_tokens_details"))
    outputs = _mapping(given.get("output_tokens_details") or given.get("completion_tokens_details"))
    return Usage(
        input_tokens=_count(given.get("input_tokens", given.get("prompt_tokens"))),
        output_tokens=_count(given.get("output_tokens", given.get("completion_tokens"))),
        cached_tokens=_count(inputs.get("cached_tokens")),
        cache_write_tokens=_count(inputs.get("cache_write_tokens")),
        reasoning_tokens=_count(outputs.get("reasoning_tokens")),
    )


class _Patience:
    """How long to wait; the time our own side takes between two reads does not count."""

    def __init__(self, upstream: Upstream) -> None:
        self._now = asyncio.get_running_loop().time
        self._upstream = upstream
        self._stale_at = self._now() + upstream.stale_secs
        self._silent_at = math.inf
        self._has_heard = False

    def limit(self) -> asyncio.Timeout:
        if self._has_heard:
            self._silent_at = self._now() + self._upstream.read_secs
        return asyncio.timeout_at(min(self._stale_at, self._silent_at))

    def renew(self, *, had_events: bool) -> None:
        self._has_heard = True
        if had_events:
            self._stale_at = self._now() + self._upstream.stale_secs

    def failure(self) -> ModelFailed:
        if self._silent_at < self._stale_at:
            return ModelFailed(f"The model's stream was cut: no data for {self._upstream.read_secs:g} s.")
        return ModelFailed(f"The model's stream was cut: no event for {self._upstream.stale_secs:g} s.")


def _sdk(upstream: Upstream) -> AsyncOpenAI:
    limits = httpx2.Limits(
        max_connections=None, max_keepalive_connections=MAX_IDLE_CONNECTIONS, keepalive_expiry=KEEPALIVE_EXPIRY_SECS
    )
    transport = httpx2.AsyncHTTPTransport(limits=limits, socket_options=list(_socket_options()))
    # A mount instead of the transport argument: with that one, HTTPS_PROXY and its kin would be ignored.
    # There is no read timeout here: it would also limit the wait for the first byte.
    http = httpx2.AsyncClient(
        mounts={"all://": transport},
        limits=limits,
        timeout=httpx2.Timeout(None, connect=upstream.connect_secs, write=upstream.write_secs),
    )
    sdk = AsyncOpenAI(
        # A missing key the SDK would take from OPENAI_API_KEY, which is not meant for any other server.
        api_key=upstream.api_key or "none",
        base_url=upstream.base_url or None,
        max_retries=0,
        timeout=http.timeout,
        http_client=http,
    )
    if not upstream.is_openai:
        sdk.organization = sdk.project = None
    return sdk


def _socket_options() -> Iterator[tuple[int, int, int]]:
    """A peer that vanished without a word is noticed after about a minute."""
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


async def _refuse_json(answer: openai.AsyncAPIResponse[Any]) -> None:
    if "json" not in answer.headers.get("content-type", ""):
        return
    parse(await answer.read())
    raise ModelFailed("The model's server did not answer with a stream of events.")


def _data_of(frame: bytes) -> bytes:
    """What the frame's data lines hold; comments and other fields are left out."""
    parts = [line[5:].removeprefix(b" ") for line in frame.split(b"\n") if line.startswith(b"data:")]
    return b"\n".join(parts)


def _parse_leniently(data: bytes) -> Any:
    """Half a surrogate pair or a broken character must not cost the answer; whoever stores it cleans it."""
    try:
        return json.loads(data.decode("utf-8", "replace"))
    except ValueError:
        raise ModelFailed("The model's stream was cut: an event is not valid JSON.") from None


def _message(body: Any) -> str:
    if isinstance(body, dict):
        body = body.get("message") or body.get("detail") or body.get("error")
    if isinstance(body, dict):
        body = body.get("message")
    text = body.strip() if isinstance(body, str) else ""
    return "" if text.startswith("<") else text  # a proxy's page is no message


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _count(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0
