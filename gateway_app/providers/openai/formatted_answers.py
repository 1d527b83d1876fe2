"""Answers in a format: asked for in a form that the upstream takes, and checked.

An upstream that is known to enforce a form streams its answers, once a first one has shown that it
does; they are checked at their end. Any other answer is held back until it is whole. If it is not
what the schema allows, the model gets one more request that shows what is wrong; no client ever sees
the rejected document.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any

from gateway_app.agent.context import as_note
from gateway_app.agent.events import ModelEvent, ModelFailed, ProtocolDeviation, Usage
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
from gateway_app.providers.openai.held_answer import HeldAnswer
from gateway_app.providers.openai.json_documents import DocumentRejected, check_schema
from responses_app.protocol.items import Item

REPAIR = (
    "Your answer above can't be used:\n{errors}\n"
    "Answer again with the corrected JSON document and nothing else."
)
REJECTED = "The model's answer does not follow the format, also after a second request: {errors}"
SENT = (
    "The model's answer does not follow the format: {errors}. It was sent before its end, and can't "
    "be replaced. The next answers of this model are checked before they are sent: ask again."
)

Body = dict[str, Any]
Change = Callable[[Body], Body]
# Sends a request whose body the second argument has changed.
Ask = Callable[[ModelCall, Change], AsyncGenerator[ModelEvent]]


class _FormIgnored(Exception):
    """The upstream took the form, and did not hold the model to it; no client saw the answer."""


@dataclass
class _Spending:
    """All requests for one answer share the client's limit."""

    limit: int | None
    usage: Usage = field(default_factory=Usage)

    def left(self) -> int | None:
        if self.limit is None:
            return None
        return max(0, self.limit - self.usage.output_tokens)


class FormattedAnswers:
    def __init__(self, upstream: Upstream, ask: Ask) -> None:
        self._forms = KnownForms(upstream)
        self._ask = ask

    async def stream(self, call: ModelCall) -> AsyncGenerator[ModelEvent]:
        """The answer in a form that the upstream enforces, or else in one that is checked."""
        wanted = TextFormat.of(call)
        spending = _Spending(call.max_output_tokens)
        for is_believed in (True, False):
            answer = self._in_best_form(call, wanted, spending, is_believed=is_believed)
            try:
                async with aclosing(answer) as events:
                    async for event in events:
                        yield event
                return
            except _FormIgnored as ignored:
                yield ProtocolDeviation(f"{ignored} format without effect")

    async def _in_best_form(
        self, call: ModelCall, wanted: TextFormat, spending: _Spending, *, is_believed: bool
    ) -> AsyncGenerator[ModelEvent]:
        """The answer in the first form that the upstream takes."""
        best = self._forms.all(wanted)[0]
        first_refusal: Refused | None = None
        unclear: list[FormatForm] = []
        for form in self._forms.candidates(wanted):
            if form is not best:
                yield ProtocolDeviation(f"no {best} format")
            if is_believed and self._forms.is_enforced(wanted, form):
                answer = self._believed(call, wanted, form, spending)
            else:
                answer = self._checked(call, wanted, form, spending)
            has_answer = False
            try:
                async with aclosing(answer) as events:
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

    async def _believed(
        self, call: ModelCall, wanted: TextFormat, form: FormatForm, spending: _Spending
    ) -> AsyncGenerator[ModelEvent]:
        """The first document is held back; the next ones stream if it is right."""
        answer = HeldAnswer(call, wanted, streams=self._forms.is_proven(wanted, form))
        async with aclosing(
            self._request(call, _changing(wanted, form), answer, spending)
        ) as events:
            async for event in events:
                yield event
        try:
            rejected = await answer.check()
        except ModelFailed:
            rejected = None  # nothing can be compared with this schema: the upstream's word counts
        if answer.is_document:
            self._forms.note_proven(wanted, form)
        if rejected is not None or not answer.is_bare:
            self._forms.note_ignored(wanted, form)
        if rejected is not None and answer.has_sent_text:
            raise ModelFailed(SENT.format(errors=rejected), usage=spending.usage)
        if rejected is not None and spending.left() != 0:
            raise _FormIgnored(form)
        for held in answer.release(spending.usage, is_rejected=rejected is not None):
            yield held

    async def _checked(
        self, call: ModelCall, wanted: TextFormat, form: FormatForm, spending: _Spending
    ) -> AsyncGenerator[ModelEvent]:
        await asyncio.to_thread(check_schema, wanted.schema)
        call = with_instructions(call, wanted)
        change = _changing(wanted, form)
        is_repaired = False
        while True:
            answer = HeldAnswer(call, wanted)
            async with aclosing(self._request(call, change, answer, spending)) as events:
                async for event in events:
                    yield event
            rejected = await answer.check()
            if rejected is None or spending.left() == 0:
                for held in answer.release(spending.usage, is_rejected=rejected is not None):
                    yield held
                return
            if is_repaired:
                raise ModelFailed(REJECTED.format(errors=rejected), usage=spending.usage)
            is_repaired = True
            yield ProtocolDeviation("an answer that the schema does not allow")
            call = _repair(call, answer.text, rejected)

    async def _request(
        self, call: ModelCall, change: Change, answer: HeldAnswer, spending: _Spending
    ) -> AsyncGenerator[ModelEvent]:
        """What of the answer passes at once."""
        request = replace(call, max_output_tokens=spending.left())
        try:
            async with aclosing(self._ask(request, change)) as events:
                async for event in events:
                    for passed in answer.receive(event):
                        yield passed
        except ModelFailed as failure:
            failure.usage = spending.usage + answer.usage(failure.usage)
            raise
        spending.usage += answer.usage(answer.finish.usage)


def _changing(wanted: TextFormat, form: FormatForm) -> Change:
    def change(body: Body) -> Body:
        return in_form(body, wanted, form)

    return change


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
