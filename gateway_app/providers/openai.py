"""OpenAI, and every server that speaks like it."""

from collections.abc import AsyncGenerator

from gateway_app.agent.types import ModelCall, ModelEvent
from gateway_app.providers.chat_completions import stream_chat
from gateway_app.providers.codex_responses import stream_responses
from gateway_app.providers.upstream import Upstream, UpstreamClient

PROTOCOLS = {"chat_completions": stream_chat, "codex_responses": stream_responses}


class OpenAIProvider:
    def __init__(self, upstream: Upstream) -> None:
        self._client = UpstreamClient(upstream)
        self._protocol = PROTOCOLS[upstream.api_mode]

    def stream(self, call: ModelCall) -> AsyncGenerator[ModelEvent]:
        return self._protocol(self._client, call)

    async def aclose(self) -> None:
        await self._client.aclose()
