"""OpenAI's SDK as the client of a model's server: connections, time limits, errors, the raw stream."""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

import httpx2
import openai
import orjson
from openai import AsyncOpenAI

from gateway_app.agent.events import ModelFailed
from gateway_app.config.presets.facts import Preset
from gateway_app.config.presets.registry import PRESETS
from gateway_app.config.upstream_limits import is_nearby
from gateway_app.providers.openai.errors import MAX_MESSAGE_CHARS, refusal
from gateway_app.providers.openai.event_reader import EventReader, Takes
from gateway_app.providers.openai.requests import Requests
from gateway_app.providers.openai.sse import (
    MAX_ANSWER_BYTES,
    Event,
    WholeAnswer,
    cut_off,
    parse,
)
from gateway_app.providers.openai.transport import ResponseBody, Transport
from gateway_app.providers.openai.watchdog import Watchdog

Opening = AbstractAsyncContextManager[ResponseBody]

# An answer that is not read to its end costs the connection; waiting for a slow server costs more.
DRAIN_SECS = 0.25
MIN_REDACTED_CHARS = 4  # a shorter key is no secret, and its letters are in every message
RESTART_SECS = 15.0  # in which a server accepts connections again; its model may take longer
# A model reads a long context before its first event: above so many tokens, the stale limit is at
# least so many seconds.
STALE_FLOORS_SECS = ((100_000, 300.0), (50_000, 240.0))
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
    loading_secs: float = 0  # to wait for a model that is not ready yet

    @property
    def address(self) -> str:
        return self.base_url or self.preset.base_url

    @property
    def preset(self) -> Preset:
        return PRESETS[self.name]

    @property
    def is_openai(self) -> bool:
        return self.name == "openai"

    def with_options(
        self, body: dict[str, Any], limit_field: str, answer_room: int | None
    ) -> dict[str, Any]:
        """The body with the options of the model, where the request leaves them open.

        Servers such as vLLM refuse an answer that does not fit beside the request: a limit that the
        client did not choose is then lowered to ``answer_room``.
        """
        defaults: dict[str, Any] = {}
        if "temperature" in self.options:
            defaults["temperature"] = self.options["temperature"]
        if "max_tokens" in self.options:
            limits = (self.options["max_tokens"], answer_room)
            defaults[limit_field] = min(filter(None, limits))
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
        transport = Transport(upstream.address)
        self.sdk = _sdk(upstream, transport)
        self._requests = Requests(self.sdk, transport)
        self._is_nearby = is_nearby(upstream.address)
        self._has_answered = False
        self._secrets = _secrets_of(upstream)
        self.headers: dict[str, Any] = dict(upstream.options.get("extra_headers") or {})
        if not upstream.api_key:
            self.headers["Authorization"] = openai.Omit()
        elif upstream.preset.key_header:
            self.headers[upstream.preset.key_header] = upstream.api_key

    async def aclose(self) -> None:
        await self.sdk.close()

    def open(self, path: str, body: dict[str, Any], headers: dict[str, Any]) -> Opening:
        content = orjson.dumps({"model": self.upstream.model} | body)
        return opened(self._requests.post(path, content, headers))

    async def events(
        self,
        opening: Opening,
        is_last: Callable[[Event], bool],
        tokens: int = 0,
        is_streamed: bool = True,
        takes: Takes | None = None,
    ) -> AsyncGenerator[list[Event]]:
        """The events of an answer up to its last, those of each read together.

        Without the reads that ``takes`` has taken. Closing the generator closes the answer at once.
        """
        stale_secs = self.upstream.stale_limit_secs(tokens)
        stale_at = asyncio.get_running_loop().time() + stale_secs
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout_at(stale_at):
                    body = await stack.enter_async_context(opening)
                    self._has_answered = True
                    whole = await self._whole(body, is_streamed)
                if whole is not None:
                    yield [whole]
                    return
                watchdog = Watchdog(body, self.upstream.read_secs, stale_secs, stale_at)
                reader = EventReader(body, stack.enter_context(watchdog), is_last, takes)
                async with aclosing(reader.batches()) as batches:
                    async for batch in batches:
                        yield batch
                await _drain(body)
        except TimeoutError:
            raise cut_off(f"no event for {stale_secs:g} s") from None
        except openai.OpenAIError as error:
            raise self._failure(error) from None
        except (httpx2.HTTPError, OSError) as error:
            raise cut_off(str(error) or type(error).__name__) from None

    async def _whole(self, body: ResponseBody, is_streamed: bool) -> WholeAnswer | None:
        if "json" not in body.content_type:
            return None
        answer = parse(await _read(body))
        if is_streamed and (self.upstream.is_openai or not {"choices", "output"} & answer.keys()):
            raise ModelFailed("The model's server did not answer with a stream of events.")
        return WholeAnswer(answer)

    def redacted(self, failure: ModelFailed) -> ModelFailed:
        failure.message = self.redact(failure.message)
        failure.args = (failure.message,)
        return failure

    def redact(self, message: str) -> str:
        for secret in self._secrets:
            message = message.replace(secret, "[redacted]")
        return _CREDENTIALS.sub("[redacted]", message)[:MAX_MESSAGE_CHARS]

    def _failure(self, error: openai.OpenAIError) -> ModelFailed:
        if isinstance(error, openai.APIStatusError):
            self._has_answered = True
            refused = refusal(error)
            if refused.is_loading or (refused.status == 503 and self._is_nearby):
                refused.patience_secs = self.upstream.loading_secs
            return refused
        if isinstance(error, openai.APITimeoutError) and isinstance(
            error.__cause__, httpx2.ConnectTimeout
        ):
            message = f"The model's server was not reached within {self.upstream.connect_secs:g} s."
        elif isinstance(error, openai.APITimeoutError):
            message = f"The model's server took no data for {self.upstream.write_secs:g} s."
        else:
            message = f"The model's server cannot be reached: {error.__cause__ or error}"
        failure = ModelFailed(message, is_transient=isinstance(error, openai.APIConnectionError))
        # A server that was there and refuses connections is being restarted. One that never
        # answered may not be running at all, which the client should know at once.
        is_known = self._is_nearby and self._has_answered
        if is_known and isinstance(error.__cause__, httpx2.ConnectError):
            failure.patience_secs = min(self.upstream.loading_secs, RESTART_SECS)
        return failure


def _secrets_of(upstream: Upstream) -> list[str]:
    """What may be a secret, as it is and as it is in an address; the longest first."""
    address = urlsplit(upstream.address)
    given = [upstream.api_key, address.username or "", address.password or ""]
    for values in (upstream.options.get("extra_headers"), upstream.options.get("query")):
        given += map(str, (values or {}).values())
    given += [value for _, value in parse_qsl(address.query)]
    found = set()
    for secret in given:
        found |= {secret, quote(secret, safe=""), quote_plus(secret), unquote(secret)}
    secrets = [secret for secret in found if len(secret) >= MIN_REDACTED_CHARS]
    return sorted(secrets, key=len, reverse=True)


def _sdk(upstream: Upstream, transport: Transport) -> AsyncOpenAI:
    # There is no read timeout here: it would also limit the wait for the first byte.
    http = httpx2.AsyncClient(
        transport=transport,
        timeout=httpx2.Timeout(None, connect=upstream.connect_secs, write=upstream.write_secs),
    )
    sdk = AsyncOpenAI(
        # Without a key the SDK sends OPENAI_API_KEY, which is not meant for any other server.
        api_key=upstream.api_key or "none",
        base_url=upstream.address,
        default_query=upstream.options.get("query"),
        max_retries=0,
        timeout=http.timeout,
        http_client=http,
    )
    if not upstream.is_openai:
        sdk.organization = sdk.project = None
    return sdk


@asynccontextmanager
async def opened(sent: Awaitable[ResponseBody]) -> AsyncIterator[ResponseBody]:
    body = await sent
    try:
        yield body
    finally:
        await body.aclose()


async def _read(body: ResponseBody) -> bytes:
    """All of it; a server that sends without end must not take all memory."""
    answer = bytearray()
    async with aclosing(aiter(body)) as pieces:
        async for piece in pieces:
            answer += piece
            if len(answer) > MAX_ANSWER_BYTES:
                limit = f"{MAX_ANSWER_BYTES // 1_000_000} MB"
                raise ModelFailed(f"The model's answer is longer than {limit}.", is_transient=True)
    return bytes(answer)


async def _drain(body: ResponseBody) -> None:
    """An answer that was read to its end leaves its connection to the next request."""
    if body.is_at_end:
        return
    try:
        async with asyncio.timeout(DRAIN_SECS):
            while await body.read():
                pass
    except (TimeoutError, httpx2.HTTPError):
        return
