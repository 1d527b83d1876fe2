"""OpenAI's Responses: a call as its request, its stream as the events of a model."""

from collections.abc import Callable, Iterator
from typing import Any

from gateway_app.agent.choices import allowed_names
from gateway_app.agent.events import (
    Annotation,
    Item,
    MessageStarted,
    ModelCall,
    ModelEvent,
    ModelFailed,
    OpaqueItem,
    Quirk,
    ReasoningDelta,
    ReasoningSealed,
    RefusalDelta,
    TextDelta,
    Usage,
)
from gateway_app.agent.parameters import MODEL_PARAMETERS
from gateway_app.providers.openai.answer import Answer, Protocol
from gateway_app.providers.openai.client import (
    Opening,
    Upstream,
    UpstreamClient,
    read_usage,
)
from gateway_app.providers.openai.errors import failure_in
from gateway_app.providers.openai.responses.item_tracker import Place, Places
from gateway_app.providers.openai.sse import Event, WholeAnswer
from responses_app.protocol.items import CALLS

_SPOKEN = ("message", "reasoning", *CALLS)
_ARGUMENTS = ("response.function_call_arguments.", "response.custom_tool_call_input.")
_OPENING = ("response.created", "response.queued", "response.in_progress")
_TERMINAL = ("response.completed", "response.incomplete", "response.failed")
MAX_NAME_CHARS = 60
# What the server wrote around an item that is sent back: its own ids and states mean nothing there.
_ITEM_FIELDS = {
    "function_call": ("type", "call_id", "name", "arguments"),
    "function_call_output": ("type", "call_id", "output"),
    "custom_tool_call": ("type", "call_id", "name", "input"),
    "custom_tool_call_output": ("type", "call_id", "output"),
    "reasoning": ("type", "summary", "encrypted_content"),
}


# -- the request ------------------------------------------------------------------------
def open_responses(
    client: UpstreamClient, body: dict[str, Any], headers: dict[str, Any]
) -> Opening:
    # The SDK walks through every item it is given, at 0.2 ms each; an extra body it sends as it is.
    create = client.sdk.responses.with_streaming_response.create
    stream: bool = body["stream"]
    return create(
        model=client.upstream.model,
        stream=stream,
        store=False,
        extra_body=body,
        extra_headers=headers,
    )


def responses_body(call: ModelCall, upstream: Upstream) -> dict[str, Any]:
    body: dict[str, Any] = {
        **call.extras,
        "input": [sent for item in call.items if (sent := _item(item, call))],
    }
    given = (
        name for name in MODEL_PARAMETERS if name != "parallel_tool_calls"
    )  # that one only with tools
    body |= {name: call.parameters[name] for name in given if call.parameters.get(name) is not None}
    if call.instructions:
        body["instructions"] = call.instructions
    if call.max_output_tokens is not None:
        body["max_output_tokens"] = call.max_output_tokens
    # Left out, strict means true to OpenAI, and most schemas are not written for that.
    specs = [
        {**spec, "name": call.wire_name(spec["name"]), "strict": bool(spec.get("strict"))}
        if spec["type"] == "function"
        else spec
        for spec in call.tool_specs()
    ]
    if specs or call.hosted_tools:
        body["tools"] = [*specs, *call.hosted_tools]
        body["tool_choice"] = _choice(call.tool_choice, call)
        if call.parameters.get("parallel_tool_calls") is not None:
            body["parallel_tool_calls"] = call.parameters["parallel_tool_calls"]
    return body


def _choice(chosen: Any, call: ModelCall) -> Any:
    if not isinstance(chosen, dict):
        return chosen
    allowed = allowed_names(call)
    if allowed is None:
        return {**chosen, "name": call.wire_name(chosen["name"])} if "name" in chosen else chosen
    kinds = {spec["name"]: spec["type"] for spec in call.tool_specs()}
    named = [
        {"type": kinds[name], "name": call.wire_name(name)} for name in kinds if name in allowed
    ]
    hosted = [tool for tool in chosen["tools"] if tool["type"] not in ("function", "custom", "mcp")]
    return {**chosen, "tools": [*named, *hosted]}


def _item(item: Item, call: ModelCall) -> Item | None:
    kind = item.get("type", "message")
    if kind == "message":
        phase = {"phase": item["phase"]} if item.get("phase") else {}
        return {
            "type": kind,
            "role": item["role"],
            "content": _content(item["content"], item["role"]),
            **phase,
        }
    if kind == "reasoning" and not item.get("encrypted_content"):
        return None
    if kind not in _ITEM_FIELDS:  # of a kind that the client and this upstream know
        return {name: value for name, value in item.items() if name not in ("id", "status")}
    sent = {name: item[name] for name in _ITEM_FIELDS[kind] if name in item}
    return {**sent, "name": call.wire_name(item["name"])} if kind in CALLS else sent


def _content(content: str | list[Item], role: str) -> str | list[Item]:
    if isinstance(content, str):
        return content
    text_type = "output_text" if role == "assistant" else "input_text"
    return [
        {"type": text_type, "text": part["text"]} if "text" in part else part for part in content
    ]


# -- the answer -------------------------------------------------------------------------
class ResponsesAnswer(Answer):
    def __init__(self, call: ModelCall, upstream: Upstream) -> None:
        super().__init__(call, upstream)
        self._has_begun = self._is_marked = False
        self._places = Places()

    def is_last(self, event: Event) -> bool:
        return event.get("type") in _TERMINAL

    def read(self, event: Event) -> Iterator[ModelEvent]:
        kind = str(event.get("type"))
        if not self._has_begun:
            yield from self._begin(kind)
        if kind in _DELTAS:
            of, make = _DELTAS[kind]
            place, delta = self._places.find(event, of), str(event.get("delta") or "")
            place.received += len(delta)
            if delta:
                is_text = make is TextDelta
                yield from self.calls.say(
                    self.text(delta, event.get("logprobs")) if is_text else make(delta)
                )
        elif kind == "response.reasoning_summary_part.added" and event.get("summary_index"):
            yield from self.calls.say(ReasoningDelta("\n\n"))
        elif kind == "response.output_text.annotation.added" and isinstance(
            event.get("annotation"), dict
        ):
            yield from self.calls.say(Annotation(event["annotation"]))
        elif kind.startswith(_ARGUMENTS):
            place = self._places.find(
                event, "custom_tool_call" if "custom" in kind else "function_call"
            )
            yield from self._arguments(place, event)
        elif kind in ("response.output_item.added", "response.output_item.done"):
            place = self._places.find(event, event["item"]["type"])
            step = self._added if kind.endswith("added") else self._item_done
            yield from step(place, event["item"])
        elif kind in _TERMINAL:
            yield from self._end(kind, event["response"])
        elif kind not in _OPENING:
            self._mark(event)

    def read_whole(self, body: WholeAnswer) -> Iterator[ModelEvent]:
        yield Quirk("a whole answer")
        if body.get("status") == "failed":
            raise failure_in(body.get("error") or {})
        yield from self._end(f"response.{body.get('status')}", body)

    def has_nameless_call(self) -> bool:
        return any(place.kind in CALLS and not place.call_id for place in self._places.all)

    def is_marked_finished(self, *, is_clean: bool) -> bool:
        places = self._places.all
        is_each_done = is_clean and all(place.is_done for place in places)
        return bool(places) and (self._is_marked or is_each_done)

    def _begin(self, kind: str) -> Iterator[ModelEvent]:
        """Relays leave out the first event or put their own before it; OpenAI never does."""
        self._has_begun = True
        if kind == _OPENING[0]:
            return
        named = kind[:MAX_NAME_CHARS]
        if self.upstream.is_openai:
            raise ModelFailed(
                f"The model's server broke its protocol: expected response.created before {named}."
            )
        yield Quirk(f"no response.created before {named}")

    def _mark(self, event: Event) -> None:
        response = event.get("response")
        given = event.get("usage") or (
            response.get("usage") if isinstance(response, dict) else None
        )
        usage = read_usage(given)
        if usage != Usage():
            self.usage, self._is_marked = usage, True

    def _added(self, place: Place, item: Item) -> Iterator[ModelEvent]:
        is_new, place.is_announced = not (place.is_announced or place.received), True
        if item["type"] == "message" and is_new:
            phase = item.get("phase")
            yield from self.calls.say(MessageStarted(phase if isinstance(phase, str) else None))
        if item["type"] in CALLS and not place.call_id and item.get("name"):
            started = self.calls.start(item.get("call_id") or "", item["name"])
            place.call_id = started.call_id
            yield started

    def _arguments(self, place: Place, event: Event) -> Iterator[ModelEvent]:
        """Piece by piece, or the rest where a server does not stream them."""
        if not place.call_id:
            return
        whole = event.get("arguments", event.get("input"))
        delta = event.get("delta") or "" if whole is None else whole[place.received :]
        place.received += len(delta)
        yield from self.calls.arguments(place.call_id, delta)

    def _item_done(self, place: Place, item: Item) -> Iterator[ModelEvent]:
        if place.is_done:
            return
        place.is_done = True
        self.note_id(item.get("id"))
        yield from self._added(place, item)
        if place.call_id:
            yield from self._arguments(
                place, {"arguments": item.get("arguments") or item.get("input") or ""}
            )
            if item.get("status") != "incomplete":
                yield from self.calls.finish(place.call_id)
        elif item["type"] not in _SPOKEN:
            yield from self.calls.say(OpaqueItem(item))
        elif not place.received:
            for event in self._said_at_once(item):
                yield from self.calls.say(event)
        if item["type"] == "reasoning" and item.get("encrypted_content"):
            yield from self.calls.say(ReasoningSealed(item["encrypted_content"]))

    def _said_at_once(self, item: Item) -> Iterator[ModelEvent]:
        for part in item.get("summary") or ():
            yield ReasoningDelta(part["text"])
        for part in item.get("content") or ():
            if "refusal" in part:
                yield RefusalDelta(part["refusal"])
            elif item["type"] == "reasoning":
                yield ReasoningDelta(part["text"])
            else:
                yield self.text(part["text"], part.get("logprobs"))
            for annotation in part.get("annotations") or ():
                yield Annotation(annotation)

    def _end(self, kind: str, response: dict[str, Any]) -> Iterator[ModelEvent]:
        self.usage = read_usage(response.get("usage"))
        self.note_id(response.get("id"))
        if kind == "response.failed":
            raise failure_in(response.get("error") or {})
        is_cut = kind == "response.incomplete"
        streamed = {place.kind for place in self._places.all}
        for index, item in enumerate(response.get("output") or ()):
            # What was streamed counts; this only adds what was left out, for it can't be told from a repetition.
            is_left_out = not streamed or (
                item["type"] in ("message", *CALLS) and item["type"] not in streamed
            )
            if is_left_out or self._places.is_known_call(item):
                done = (
                    {} if streamed else {"type": "response.output_item.done", "output_index": index}
                )
                place = self._places.find({**done, "item": item}, item["type"])
                yield from self._item_done(place, _unless_cut(item, is_cut))
        self.reason = "stop"
        if is_cut:
            why = (response.get("incomplete_details") or {}).get("reason")
            self.reason = "content_filter" if why == "content_filter" else "length"


_DELTAS: dict[str, tuple[str, Callable[[str], ModelEvent]]] = {
    "response.output_text.delta": ("message", TextDelta),
    "response.refusal.delta": ("message", RefusalDelta),
    "response.reasoning_summary_text.delta": ("reasoning", ReasoningDelta),
    "response.reasoning_text.delta": ("reasoning", ReasoningDelta),
    "response.reasoning.delta": ("reasoning", ReasoningDelta),  # the name in Open Responses
}


def _unless_cut(item: Item, is_cut: bool) -> Item:
    """Of an answer that was cut, only the arguments tell which calls are whole."""
    return {**item, "status": "incomplete"} if is_cut and item["type"] == "function_call" else item


CODEX_RESPONSES = Protocol(responses_body, open_responses, ResponsesAnswer)
