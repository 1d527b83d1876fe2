"""OpenAI's Chat Completions: a call as its request, its chunks as the events of a model."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Any

import orjson

from gateway_app.agent.context import text_of
from gateway_app.agent.types import (
    Item,
    ModelCall,
    ModelEvent,
    ModelFailed,
    ModelFinished,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    Usage,
)
from gateway_app.providers.calls import Calls
from gateway_app.providers.upstream import Event, Upstream, UpstreamClient, read_usage

# Not metadata: OpenAI refuses it for completions that are not stored.
_SAME_NAMES = ("temperature", "top_p", "prompt_cache_key", "safety_identifier", "service_tier", "user")
_REASONS = {"length": "length", "content_filter": "content_filter", "tool_calls": "tool_calls"}
_CUT = ("length", "content_filter")


async def stream_chat(client: UpstreamClient, call: ModelCall) -> AsyncGenerator[ModelEvent]:
    answer = _Answer(call)
    # The SDK walks through every message it is given, at 0.2 ms each; an extra body it sends as it is.
    opening = client.sdk.chat.completions.with_streaming_response.create(
        model=client.upstream.model,
        messages=[],
        stream=True,
        extra_body=chat_body(call, client.upstream),
        extra_headers=client.headers,
    )
    try:
        async with aclosing(client.events(opening)) as chunks:
            async for chunk in chunks:
                for event in answer.read(chunk):
                    yield event
    except ModelFailed:
        if not answer.reason:  # after the finish reason only the usage can be lost
            raise
    for event in answer.end():
        yield event


# -- the request ------------------------------------------------------------------------
def chat_body(call: ModelCall, upstream: Upstream) -> dict[str, Any]:
    body: dict[str, Any] = {"stream_options": {"include_usage": True}, "messages": _messages(call, upstream)}
    body |= {name: call.parameters[name] for name in _SAME_NAMES if call.parameters.get(name) is not None}
    body |= _tools(call) | _format(call.parameters.get("text") or {})
    if call.max_output_tokens is not None:
        body["max_completion_tokens" if upstream.is_openai else "max_tokens"] = call.max_output_tokens
    if effort := (call.parameters.get("reasoning") or {}).get("effort"):
        body["reasoning_effort"] = effort
    if count := call.parameters.get("top_logprobs"):
        body |= {"logprobs": True, "top_logprobs": count}
    return body


def _tools(call: ModelCall) -> dict[str, Any]:
    specs, choice = call.tool_specs(), call.tool_choice
    if isinstance(choice, dict) and choice["type"] == "allowed_tools":
        allowed = {tool.get("name") for tool in choice["tools"]}
        specs, choice = [spec for spec in specs if spec["name"] in allowed], choice["mode"]
    elif isinstance(choice, dict):
        choice = {"type": "function", "function": {"name": choice["name"]}}
    if not specs:
        return {}
    fields = {"tools": [_tool(spec) for spec in specs], "tool_choice": choice}
    is_parallel = call.parameters.get("parallel_tool_calls")
    return fields if is_parallel is None else fields | {"parallel_tool_calls": is_parallel}


def _tool(spec: dict[str, Any]) -> dict[str, Any]:
    names = ("name", "description", "parameters", "strict")
    return {"type": "function", "function": {name: spec[name] for name in names if spec.get(name) is not None}}


def _format(text: dict[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    wanted = text.get("format") or {}
    if wanted.get("type") == "json_schema":
        names = ("name", "description", "schema", "strict")
        schema = {name: wanted[name] for name in names if wanted.get(name) is not None}
        fields["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif wanted.get("type") == "json_object":
        fields["response_format"] = {"type": "json_object"}
    if text.get("verbosity") not in (None, "medium"):  # the default; servers that don't know it may refuse it
        fields["verbosity"] = text["verbosity"]
    return fields


def _messages(call: ModelCall, upstream: Upstream) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    if call.instructions:
        messages.append({"role": "system", "content": call.instructions})
    for item in call.items:
        kind = item.get("type", "message")
        if kind == "message" and item["role"] == "assistant":
            _add_assistant(messages, item)
        elif kind == "message":
            role = "system" if item["role"] == "developer" and not upstream.is_openai else item["role"]
            messages.append({"role": role, "content": _content(item["content"])})
        elif kind == "function_call":
            _add_call(messages, item)
        elif kind == "function_call_output":
            messages.append({"role": "tool", "tool_call_id": item["call_id"], "content": _tool_text(item["output"])})
    return messages


def _add_assistant(messages: list[dict[str, Any]], item: Item) -> None:
    text = text_of(item) or "".join(part.get("refusal", "") for part in item["content"] if isinstance(part, dict))
    last = messages[-1] if messages else {}
    if "tool_calls" in last:  # the results must follow the calls with nothing in between
        last["content"] = (last["content"] or "") + text
    else:
        messages.append({"role": "assistant", "content": text})


def _add_call(messages: list[dict[str, Any]], item: Item) -> None:
    if not messages or messages[-1]["role"] != "assistant":
        messages.append({"role": "assistant", "content": None})
    function = {"name": item["name"], "arguments": item["arguments"]}
    messages[-1]["content"] = messages[-1]["content"] or None
    messages[-1].setdefault("tool_calls", []).append({"id": item["call_id"], "type": "function", "function": function})


def _content(content: str | list[Item]) -> str | list[dict[str, Any]]:
    if isinstance(content, str):
        return content
    parts = [_part(part) for part in content]
    return str(parts[0]["text"]) if len(parts) == 1 and parts[0]["type"] == "text" else parts


def _part(part: Item) -> dict[str, Any]:
    if part["type"] == "input_image" and part.get("image_url"):
        detail = {"detail": part["detail"]} if part.get("detail") else {}
        return {"type": "image_url", "image_url": {"url": part["image_url"], **detail}}
    if "text" in part:
        return {"type": "text", "text": part["text"]}
    raise ModelFailed(f"A content part of type {part['type']!r} can't be sent to this model.", "invalid_prompt")


def _tool_text(output: str | list[Item]) -> str:
    if isinstance(output, str):
        return output
    return "".join(part.get("text", "[an image, which this protocol can't carry]") for part in output)


# -- the answer -------------------------------------------------------------------------
class _Answer:
    def __init__(self, call: ModelCall) -> None:
        self.reason = ""
        self._usage = Usage()
        self._calls = Calls(call)
        self._by_index: dict[int, _ChatCall] = {}

    def read(self, chunk: Event) -> Iterator[ModelEvent]:
        if chunk.get("usage"):
            self._usage = read_usage(chunk["usage"])
        choice = next((c for c in chunk.get("choices") or () if c.get("index", 0) == 0), None)
        if choice is None:
            return
        delta = choice.get("delta") or {}
        thought = delta.get("reasoning_content") or delta.get("reasoning")
        said = ((ReasoningDelta, thought), (TextDelta, delta.get("content")), (RefusalDelta, delta.get("refusal")))
        for kind, text in said:
            if text and isinstance(text, str):
                yield from self._calls.say(kind(text))
        for fragment in delta.get("tool_calls") or ():
            yield from self._fragment(fragment)
        self.reason = choice.get("finish_reason") or self.reason

    def end(self) -> Iterator[ModelEvent]:
        if not self.reason:
            raise ModelFailed("The model's stream was cut before its finish reason.")
        if self.reason == "error":
            raise ModelFailed("The model ended its answer with an error.")
        reason = _REASONS.get(self.reason, "stop")
        yield from self._calls.end(is_cut=reason in _CUT)
        if reason == "stop" and self._calls.count:
            reason = "tool_calls"
        yield ModelFinished(reason, self._usage)

    def _fragment(self, fragment: dict[str, Any]) -> Iterator[ModelEvent]:
        index, function = fragment.get("index") or 0, fragment.get("function") or {}
        given_id, name = fragment.get("id") or "", function.get("name") or ""
        known = self._by_index.get(index)
        if known is None or known.is_followed_by(given_id, name):
            known = self._by_index[index] = _ChatCall()
        known.given_id = known.given_id or given_id
        known.name = known.name or name
        arguments = _arguments(function.get("arguments"))
        known.waiting += arguments
        known.heard += arguments
        if name and not known.call_id:
            started = self._calls.start(known.given_id, name)
            known.call_id = started.call_id
            yield started
        if known.call_id and known.waiting:
            yield from self._calls.arguments(known.call_id, known.waiting)
            known.waiting = ""


class _ChatCall:
    """A call whose fragments are still coming; it starts once its name is known."""

    def __init__(self) -> None:
        self.given_id = self.call_id = self.name = self.waiting = self.heard = ""

    def is_followed_by(self, given_id: str, name: str) -> bool:
        """Some servers give every call the index 0: an id tells the next one, or else a whole call before it."""
        if not (name and self.call_id):
            return False
        if given_id:
            return given_id != self.given_id
        return name != self.name or _is_whole(self.heard)


def _is_whole(arguments: str) -> bool:
    try:
        orjson.loads(arguments)
    except orjson.JSONDecodeError:
        return False
    return True


def _arguments(given: Any) -> str:
    return given if isinstance(given, str) else orjson.dumps(given).decode() if given else ""
