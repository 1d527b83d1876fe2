"""Answers in a format: asked for in a form that the upstream takes, checked where it does not enforce it.

A checked answer is held back until it is whole. If it is not what the schema allows, the model gets
one more request that shows what is wrong; no client ever sees the rejected document.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from gateway_app.agent.context import as_note
from gateway_app.agent.events import (
    Annotation,
    CallArguments,
    CallStarted,
    ItemState,
    ModelEvent,
    ModelFailed,
    ModelFinished,
    ProtocolDeviation,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    Usage,
)
from gateway_app.agent.model_call import ModelCall
from gateway_app.config.presets.facts import FormatForm
from gateway_app.providers.openai.client import Upstream
from gateway_app.providers.openai.errors import Refused
from gateway_app.providers.openai.formats import (
    KnownForms,
    TextFormat,
    Verdict,
    in_form,
    judge,
    with_instructions,
)
from gateway_app.providers.openai.json_documents import (
    DocumentRejected,
    check_schema,
    checked_text,
)
from responses_app.protocol.items import Item, TokenLogprob
from responses_app.protocol.token_estimate import tokens_of

REPAIR = (
    "Your answer above can't be used:\n{errors}\n"
    "Answer again with the corrected JSON document and nothing else."
)
REJECTED = "The model's answer does not follow the format, also after a second request: {errors}"

Body = dict[str, Any]
# Sends a request whose body the second argument has changed.
Ask = Callable[[ModelCall, Callable[[Body], Body]], AsyncGenerator[ModelEvent]]


class FormattedAnswers:
    def __init__(self, upstream: Upstream, ask: Ask) -> None:
        self._forms = KnownForms(upstream)
        self._ask = ask

    async def stream(self, call: ModelCall) -> AsyncGenerator[ModelEvent]:
        """The answer in the first form that the upstream takes."""
        wanted = TextFormat.of(call)
        best = self._forms.all(wanted)[0]
        first_refusal: Refused | None = None
        unclear: list[FormatForm] = []
        for form in self._forms.candidates(wanted):
            if form is not best:
                yield ProtocolDeviation(f"no {best} format")
            has_answer = False
            try:
                async with aclosing(self._answer(call, wanted, form)) as events:
                    async for event in events:
                        if not has_answer and not isinstance(event, ProtocolDeviation):
                            has_answer = True
                            self._forms.note_taken(wanted, form, unclear)
                        yield event
                return
            except Refused as refused:
                verdict = judge(refused)
                if has_answer or not self._forms.is_next_worth_trying(wanted, form, verdict):
                    raise
                if verdict is Verdict.UNCLEAR:
                    unclear.append(form)
                first_refusal = first_refusal or refused
        assert first_refusal is not None  # there is at least one form
        raise first_refusal

    def _answer(
        self, call: ModelCall, wanted: TextFormat, form: FormatForm
    ) -> AsyncGenerator[ModelEvent]:
        def change(body: Body) -> Body:
            return in_form(body, wanted, form)

        if self._forms.is_enforced(wanted, form):
            return self._ask(call, change)
        return self._checked(with_instructions(call, wanted), wanted, change)

    async def _checked(
        self, call: ModelCall, wanted: TextFormat, change: Callable[[Body], Body]
    ) -> AsyncGenerator[ModelEvent]:
        await asyncio.to_thread(check_schema, wanted.schema)
        spent = Usage()
        is_repaired = False
        client_tools = {tool["name"] for tool in call.client_tools}
        while True:
            answer = _HeldAnswer(client_tools)
            try:
                async with aclosing(self._ask(call, change)) as events:
                    async for event in events:
                        if not answer.holds(event):
                            yield event
            except ModelFailed as failure:
                failure.usage = spent + answer.usage(failure.usage, call)
                raise
            spent += answer.usage(answer.finish.usage, call)
            rejected = await answer.check(wanted.schema)
            left = _tokens_left(call, spent)
            if rejected is None or left == 0:
                for held in answer.release(spent, is_rejected=rejected is not None):
                    yield held
                return
            if is_repaired:
                raise ModelFailed(REJECTED.format(errors=rejected), usage=spent)
            is_repaired = True
            yield ProtocolDeviation("an answer that the schema does not allow")
            call = replace(_repair(call, answer.text, rejected), max_output_tokens=left)


class _HeldAnswer:
    """One answer; its reasoning and its calls pass, its text waits."""

    def __init__(self, client_tools: set[str]) -> None:
        self.text = ""
        self.finish = ModelFinished("stop", Usage())
        self._texts: list[str] = []
        self._logprobs: list[TokenLogprob] = []
        self._behind_text: list[Annotation | ItemState] = []
        self._chars = 0
        self._client_tools = client_tools
        self._is_no_document = False  # a refusal or a call
        self._is_followed = False  # by the answer to the results of the server's tools

    def holds(self, event: ModelEvent) -> bool:
        if isinstance(event, TextDelta):
            self._texts.append(event.text)
            self._logprobs += event.logprobs
            self._chars += len(event.text)
            return True
        if isinstance(event, Annotation) or (isinstance(event, ItemState) and not event.call_id):
            self._behind_text.append(event)
            return True
        if isinstance(event, ModelFinished):
            self.finish = event
            return True
        if isinstance(event, ReasoningDelta):
            self._chars += len(event.text)
        elif isinstance(event, CallArguments):
            self._chars += len(event.delta)
        elif isinstance(event, CallStarted):
            self._is_no_document = True
            if event.name not in self._client_tools:
                self._is_followed = True
        elif isinstance(event, RefusalDelta):
            self._is_no_document = True
        return False

    def usage(self, counted: Usage, call: ModelCall) -> Usage:
        """An answer of which nothing came costs nothing."""
        if not self._chars and counted == Usage():
            return counted
        return counted.or_estimate(call.input_tokens(), tokens_of(self._chars))

    async def check(self, schema: dict[str, Any]) -> DocumentRejected | None:
        """What is wrong with it; an answer that was cut off is incomplete, and not wrong."""
        self.text = "".join(self._texts)
        if self.finish.reason != "stop" or self._is_no_document:
            return None
        try:
            text = await asyncio.to_thread(checked_text, self.text, schema)
        except DocumentRejected as rejected:
            return rejected
        if text != self.text:
            self.text = text
            self._logprobs = []
        return None

    def release(self, spent: Usage, *, is_rejected: bool) -> list[ModelEvent]:
        """The text as one delta. A rejected one has used up the client's limit: it is incomplete.

        Text beside a call of the server's tools is left out: clients would find it before the document.
        """
        events: list[ModelEvent] = []
        if self.text and self._is_followed:
            events.append(ProtocolDeviation("text beside a call in place of a document"))
        elif self.text:
            events.append(TextDelta(self.text, tuple(self._logprobs)))
            events += self._behind_text
        finish = replace(self.finish, usage=spent)
        if is_rejected:
            finish = replace(finish, reason="length")
        events.append(finish)
        return events


def _tokens_left(call: ModelCall, spent: Usage) -> int | None:
    if call.max_output_tokens is None:
        return None
    return max(0, call.max_output_tokens - spent.output_tokens)


def _repair(call: ModelCall, text: str, rejected: DocumentRejected) -> ModelCall:
    items = list(call.items)
    if text:
        answer: Item = {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": text}],
        }
        items.append(answer)
    items.append(as_note(REPAIR.format(errors="\n".join(rejected.errors))))
    return replace(call, items=items)
