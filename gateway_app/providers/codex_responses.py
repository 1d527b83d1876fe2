"""OpenAI's Responses: a call as its request, its stream as the events of a model."""

from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from typing import Any

from gateway_app.agent.types import (
    Item,
    MessageStarted,
    ModelCall,
    ModelEvent,
    ModelFailed,
    ModelFinished,
    OpaqueItem,
    ReasoningDelta,
    ReasoningSealed,
    RefusalDelta,
    TextDelta,
)
from gateway_app.providers.calls import Calls
from gateway_app.providers.upstream import Event, UpstreamClient, failure_in, read_usage

_SAME_NAMES = (
    "include",
    "metadata",
    "prompt_cache_key",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "temperature",
    "text",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
)
_SPOKEN = ("message", "reasoning", "function_call")
_TERMINAL = ("response.completed", "response.incomplete", "response.failed")
# What the server wrote around an item that is sent back: its own ids and states mean nothing there.
_ITEM_FIELDS = {
    "function_call": ("type", "call_id", "name", "arguments"),
    "function_call_output": ("type", "call_id", "output"),
    "reasoning": ("type", "summary", "encrypted_content"),
}


async def stream_responses(client: UpstreamClient, call: ModelCall) -> AsyncGenerator[ModelEvent]:
    answer = _Answer(call)
    # The SDK walks through every item it is given, at 0.2 ms each; an extra body it sends as it is.
    opening = client.sdk.responses.with_streaming_response.create(
        model=client.upstream.model,
        stream=True,
        store=False,
        extra_body=responses_body(call),
        extra_headers=client.headers,
    )
    async with aclosing(client.events(opening, is_last=lambda event: event.get("type") in _TERMINAL)) as events:
        async for event in events:
            for found in answer.read(event):
                yield found
    if answer.finish is None:
        raise ModelFailed("The model's stream was cut before its terminal event.")
    yield answer.finish


# -- the request ------------------------------------------------------------------------
def responses_body(call: ModelCall) -> dict[str, Any]:
    body: dict[str, Any] = {**call.extras, "input": [sent for item in call.items if (sent := _item(item))]}
    body |= {name: call.parameters[name] for name in _SAME_NAMES if call.parameters.get(name) is not None}
    if call.instructions:
        body["instructions"] = call.instructions
    if call.max_output_tokens is not None:
        body["max_output_tokens"] = call.max_output_tokens
    # Left out, strict means true to OpenAI, and most schemas are not written for that.
    specs = [{**spec, "strict": bool(spec.get("strict"))} for spec in call.tool_specs()]
    if specs or call.hosted_tools:
        body["tools"] = [*specs, *call.hosted_tools]
        body["tool_choice"] = call.tool_choice
        if call.parameters.get("parallel_tool_calls") is not None:
            body["parallel_tool_calls"] = call.parameters["parallel_tool_calls"]
    return body


def _item(item: Item) -> Item | None:
    kind = item.get("type", "message")
    if kind == "message":
        phase = {"phase": item["phase"]} if item.get("phase") else {}
        return {"type": kind, "role": item["role"], "content": _content(item["content"], item["role"]), **phase}
    if kind == "reasoning" and not item.get("encrypted_content"):
        return None
    if kind not in _ITEM_FIELDS:  # of a kind that the client and this upstream know
        return {name: value for name, value in item.items() if name not in ("id", "status")}
    return {name: item[name] for name in _ITEM_FIELDS[kind] if name in item}


def _content(content: str | list[Item], role: str) -> str | list[Item]:
    if isinstance(content, str):
        return content
    text_type = "output_text" if role == "assistant" else "input_text"
    return [{"type": text_type, "text": part["text"]} if "text" in part else part for part in content]


# -- the answer -------------------------------------------------------------------------
class _Answer:
    def __init__(self, call: ModelCall) -> None:
        self.finish: ModelFinished | None = None
        self._calls = Calls(call)
        self._places: dict[str, int] = {}
        self._call_ids: dict[int, str] = {}
        self._received: dict[int, int] = {}  # characters of each item, however they came
        self._done: set[int] = set()

    def read(self, event: Event) -> Iterator[ModelEvent]:
        kind = str(event.get("type"))
        if kind in _DELTAS:
            index, delta = self._place(event), str(event.get("delta") or "")
            self._received[index] = self._received.get(index, 0) + len(delta)
            yield from self._calls.say(_DELTAS[kind](delta))
        elif kind == "response.reasoning_summary_part.added" and event.get("summary_index"):
            yield from self._calls.say(ReasoningDelta("\n\n"))
        elif kind == "response.output_item.added":
            yield from self._added(self._place(event), event["item"])
        elif kind == "response.function_call_arguments.delta":
            yield from self._arguments(self._place(event), event.get("delta") or "")
        elif kind == "response.function_call_arguments.done":
            yield from self._rest(self._place(event), event.get("arguments") or "")
        elif kind == "response.output_item.done":
            yield from self._item_done(self._place(event), event["item"])
        elif kind in _TERMINAL:
            yield from self._end(kind, event["response"])

    def _place(self, event: Event) -> int:
        """Which item an event is about: by its index, for some servers change the id from event to event."""
        item = event.get("item") or {}
        item_id = str(event.get("item_id") or item.get("id") or item.get("call_id") or "")
        index = event.get("output_index")
        if not isinstance(index, int):
            index = self._places.get(item_id, len(self._places))
        self._places.setdefault(item_id, index)
        return index

    def _added(self, index: int, item: Item) -> Iterator[ModelEvent]:
        if item["type"] == "message" and index not in self._received:
            phase = item.get("phase")
            yield from self._calls.say(MessageStarted(phase if isinstance(phase, str) else None))
        self._received.setdefault(index, 0)
        if item["type"] == "function_call" and index not in self._call_ids and item.get("name"):
            started = self._calls.start(item.get("call_id") or "", item["name"])
            self._call_ids[index] = started.call_id
            yield started

    def _arguments(self, index: int, delta: str) -> Iterator[ModelEvent]:
        if index in self._call_ids:
            self._received[index] += len(delta)
            yield from self._calls.arguments(self._call_ids[index], delta)

    def _rest(self, index: int, arguments: str) -> Iterator[ModelEvent]:
        """Servers that do not stream arguments send them here."""
        yield from self._arguments(index, arguments[self._received.get(index, 0) :])

    def _item_done(self, index: int, item: Item) -> Iterator[ModelEvent]:
        if index in self._done:
            return
        self._done.add(index)
        yield from self._added(index, item)
        if index in self._call_ids:
            yield from self._rest(index, item.get("arguments") or "")
            if item.get("status") != "incomplete":
                yield from self._calls.finish(self._call_ids[index])
        elif item["type"] not in _SPOKEN:
            yield from self._calls.say(OpaqueItem(item))
        elif not self._received[index]:
            for event in _said_at_once(item):
                yield from self._calls.say(event)
        if item["type"] == "reasoning" and item.get("encrypted_content"):
            yield from self._calls.say(ReasoningSealed(item["encrypted_content"]))

    def _end(self, kind: str, response: dict[str, Any]) -> Iterator[ModelEvent]:
        if kind == "response.failed":
            raise failure_in(response.get("error") or {})
        if not self._received:  # nothing was streamed, as by servers that only wrap a whole answer
            for index, item in enumerate(response.get("output") or ()):
                yield from self._item_done(index, item)
        is_cut = kind == "response.incomplete"
        yield from self._calls.end(is_cut=is_cut)
        why = (response.get("incomplete_details") or {}).get("reason")
        reason = "tool_calls" if self._calls.count else "stop"
        if is_cut:
            reason = "content_filter" if why == "content_filter" else "length"
        self.finish = ModelFinished(reason, read_usage(response.get("usage")))


_DELTAS: dict[str, Callable[[str], ModelEvent]] = {
    "response.output_text.delta": TextDelta,
    "response.refusal.delta": RefusalDelta,
    "response.reasoning_summary_text.delta": ReasoningDelta,
    "response.reasoning_text.delta": ReasoningDelta,
    "response.reasoning.delta": ReasoningDelta,  # the name in Open Responses
}


def _said_at_once(item: Item) -> Iterator[ModelEvent]:
    for part in item.get("summary") or ():
        yield ReasoningDelta(part["text"])
    kind = ReasoningDelta if item["type"] == "reasoning" else TextDelta
    for part in item.get("content") or ():
        yield RefusalDelta(part["refusal"]) if "refusal" in part else kind(part["text"])
