"""The form in which an upstream is asked: the best one that it is not known to refuse."""

from dataclasses import replace
from typing import Any

from gateway_app.agent.answer_buffer import with_note
from gateway_app.agent.model_call import ModelCall
from gateway_app.providers.openai.answer import Protocol
from gateway_app.providers.openai.chat_completions.prefill import (
    PREFILL,
    EchoingAnswer,
    PrefillExchange,
    continuation_upstream,
    prefilled,
    prefix_of,
)
from gateway_app.providers.openai.client import UpstreamClient
from gateway_app.providers.openai.errors import Refused
from gateway_app.providers.openai.exchange import Exchange
from gateway_app.providers.openai.responses.background import (
    BACKGROUND,
    PICK_UP,
    BackgroundAnswer,
    BackgroundExchange,
    PickUpExchange,
    can_run_in_background,
    in_background,
)
from gateway_app.providers.openai.state import identity_of
from responses_app.protocol.failures import TOO_LONG

# A template that can't continue a message makes some servers answer 500; another address may not exist.
_REFUSALS = (400, 404, 405, 410, 422, 500, 501)


class Forms:
    """What one upstream has refused is not tried again while this process runs."""

    def __init__(self, client: UpstreamClient, protocol: Protocol) -> None:
        self._client = client
        self._protocol = protocol
        self._refused: set[str] = set()
        self._continuing_client: UpstreamClient | None = None

    async def aclose(self) -> None:
        if self._continuing_client not in (None, self._client):
            await self._continuing_client.aclose()

    def best(self, call: ModelCall) -> Exchange:
        upstream = self._client.upstream
        if call.resume is not None and call.resume.position.upstream == identity_of(upstream):
            answer = BackgroundAnswer(call, upstream, call.resume)
            return PickUpExchange(self._client, self._protocol.open, {"stream": True}, answer)
        if BACKGROUND not in self._refused and can_run_in_background(call, upstream):
            body = in_background(self._body(with_note(call)))
            answer = BackgroundAnswer(call, upstream)
            return BackgroundExchange(self._client, self._protocol.open, body, answer)
        if PREFILL not in self._refused and upstream.api_mode == "chat_completions":
            prefill = self._prefill(call)
            if prefill is not None:
                return prefill
        return self._plain(call)

    def without(self, form: str, call: ModelCall) -> Exchange:
        if form == PICK_UP:
            return self.best(replace(call, resume=None))
        return self._plain(call)

    def may_refuse(self, exchange: Exchange, refused: Refused) -> bool:
        """Can the form be the reason? A prompt that is too long is so in every form."""
        if not exchange.form or refused.code == TOO_LONG:
            return False
        return refused.status in _REFUSALS

    def remember_refused(self, form: str) -> None:
        """Called once the upstream has answered in another form: so the form was the reason."""
        if form in (PREFILL, BACKGROUND):
            self._refused.add(form)

    def _plain(self, call: ModelCall) -> Exchange:
        answer = self._protocol.answer(call, self._client.upstream)
        body = self._body(with_note(call))
        return Exchange(self._client, self._protocol.open, body, answer)

    def _prefill(self, call: ModelCall) -> Exchange | None:
        upstream = self._client.upstream
        prefix = prefix_of(call, upstream.preset)
        if not prefix:
            return None
        body = prefilled(self._body(call), prefix, upstream.preset)
        if body is None:
            return None
        answer = self._protocol.answer(call, upstream)
        if upstream.preset.echoes_prefix:
            answer = EchoingAnswer(call, upstream, prefix)
        return PrefillExchange(self._continuations(), self._protocol.open, body, answer)

    def _continuations(self) -> UpstreamClient:
        if self._continuing_client is None:
            upstream = continuation_upstream(self._client.upstream)
            self._continuing_client = self._client
            if upstream != self._client.upstream:
                self._continuing_client = UpstreamClient(upstream)
        return self._continuing_client

    def _body(self, call: ModelCall) -> dict[str, Any]:
        body: dict[str, Any] = {"stream": True}
        return body | self._protocol.body(call, self._client.upstream)
