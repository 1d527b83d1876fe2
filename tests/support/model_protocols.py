"""How a model's server says the steps of a script: as Chat Completions, and as Responses."""

import json
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

from tests.support.model_steps import (
    Begun,
    Call,
    Calls,
    Finish,
    Output,
    Refusal,
    Step,
    StreamStyle,
    Text,
    Thought,
)


def sse(data: Any, event: str = "") -> bytes:
    named = f"event: {event}\n" if event else ""
    return f"{named}data: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


class ChatProtocol:
    head: dict[str, Any] = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "stub"}
    fields = {Text: "content", Thought: "reasoning_content", Refusal: "refusal"}

    def frames(self, step: Step) -> list[bytes]:
        match step:
            case Output(text):
                return [self._delta({self.fields[type(step)]: text})]
            case Calls(calls):
                return [self._delta({"tool_calls": [fragment]}) for fragment in _fragments(calls)]
            case Begun(call):
                return [self._delta({"tool_calls": [fragment]}) for fragment in _fragments((call,))]
            case Finish(reason, usage):
                counted = self.head | {"choices": [], "usage": _usage(usage, "prompt", "completion")}
                return [self._delta({}, reason), sse(counted), b"data: [DONE]\n\n"]
        raise TypeError(step)

    def opening(self) -> list[bytes]:
        return []

    def whole(self, script: Sequence[Step]) -> dict[str, Any]:
        finish = next(step for step in script if isinstance(step, Finish))
        message: dict[str, Any] = {"role": "assistant"}
        for kind, name in self.fields.items():
            if text := "".join(step.text for step in script if isinstance(step, kind)):
                message[name] = text
        calls = [call for step in script if isinstance(step, Calls) for call in step.calls]
        if calls:
            message["tool_calls"] = [
                {"id": c.call_id, "type": "function", "function": {"name": c.name, "arguments": "".join(c.pieces)}}
                for c in calls
            ]
        choice = {"index": 0, "message": message, "finish_reason": finish.reason}
        usage = _usage(finish.usage, "prompt", "completion")
        return {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "choices": [choice], "usage": usage}

    def _delta(self, delta: dict[str, Any], reason: str | None = None) -> bytes:
        return sse(self.head | {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}], "usage": None})


class ResponsesProtocol:
    fields = {Text: "output_text", Thought: "reasoning_summary_text", Refusal: "refusal"}

    def __init__(self, style: StreamStyle) -> None:
        self.style = style
        self.output: list[dict[str, Any]] = []
        self.sent = 0

    def opening(self) -> list[bytes]:
        if not self.style.has_opening:
            return []
        kinds = ("response.created", "response.in_progress")
        return [sse({"type": kind, "response": {"id": "resp_1", "output": [], "usage": None}}, kind) for kind in kinds]

    def frames(self, step: Step) -> list[bytes]:
        match step:
            case Output(text):
                return [self._output(self.fields[type(step)], text)]
            case Calls(calls):
                return self._calls(calls)
            case Begun(call):
                return self._calls((call,))[:-1]
            case Finish(reason, usage):
                return self._finish(reason, usage)
        raise TypeError(step)

    def whole(self, script: Sequence[Step]) -> dict[str, Any]:
        finish = next(step for step in script if isinstance(step, Finish))
        for step in script:
            self.frames(step)
            if isinstance(step, Text | Refusal):
                kind, name = ("output_text", "text") if isinstance(step, Text) else ("refusal", "refusal")
                self.output[-1].setdefault("content", []).append({"type": kind, name: step.text})
            elif isinstance(step, Thought):
                self.output[-1].setdefault("summary", []).append({"type": "summary_text", "text": step.text})
        return self._response("completed", finish.usage)

    def _output(self, kind: str, delta: str) -> bytes:
        wanted = "reasoning" if kind.startswith("reasoning") else "message"
        if not self.output or self.output[-1]["type"] != wanted:
            self.output.append({"id": f"{wanted}_{len(self.output)}", "type": wanted})
        return self._event(f"{kind}.delta", len(self.output) - 1, delta=delta)

    def _calls(self, calls: tuple[Call, ...]) -> list[bytes]:
        first, frames = len(self.output), []
        for call in calls:
            item = {"id": f"fc_{call.call_id}", "type": "function_call", "call_id": call.call_id, "name": call.name}
            self.output.append({**item, "arguments": "".join(call.pieces), "status": "completed"})
            added = {**item, "arguments": "", "status": "in_progress"}
            frames.append(self._event("output_item.added", len(self.output) - 1, item=added))
        for place, piece in _in_turn(calls):
            frames.append(self._event("function_call_arguments.delta", first + place, delta=piece))
        done = range(first, len(self.output))
        return frames + [self._event("output_item.done", index, item=self.output[index]) for index in done]

    def _finish(self, reason: str, usage: dict[str, int]) -> list[bytes]:
        cut = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(reason)
        status = "incomplete" if cut else "completed"
        response = self._response(status, usage) | {"incomplete_details": {"reason": cut} if cut else None}
        return [sse({"type": f"response.{status}", "response": response}, f"response.{status}")]

    def _response(self, status: str, usage: dict[str, int]) -> dict[str, Any]:
        head = {"id": "resp_1", "object": "response", "created_at": 1, "model": "stub", "status": status}
        output = self.output if self.style.has_output else []
        return {**head, "output": output, "usage": _usage(usage, "input", "output"), "error": None}

    def _event(self, kind: str, index: int, **fields: Any) -> bytes:
        place = {"item_id": self.output[index]["id"], "output_index": index}
        if self.style.rotates_ids:
            self.sent += 1
            place["item_id"] = f"rotated_{self.sent}"
            if "item" in fields:
                fields["item"] = {**fields["item"], "id": f"other_{self.sent}"}
        return sse({"type": f"response.{kind}", **place, **fields}, f"response.{kind}")


def _fragments(calls: tuple[Call, ...]) -> Iterator[dict[str, Any]]:
    for index, call in enumerate(calls):
        function = {"name": call.name, "arguments": ""}
        yield {"index": index, "id": call.call_id, "type": "function", "function": function}
    for index, piece in _in_turn(calls):
        yield {"index": index, "function": {"arguments": piece}}


def _in_turn(calls: tuple[Call, ...]) -> Iterator[tuple[int, str]]:
    for pieces in zip_longest(*(call.pieces for call in calls)):
        yield from ((place, piece) for place, piece in enumerate(pieces) if piece is not None)


def _usage(counts: dict[str, int], inputs: str, outputs: str) -> dict[str, Any]:
    return {
        f"{inputs}_tokens": counts["input"],
        f"{outputs}_tokens": counts["output"],
        "total_tokens": counts["input"] + counts["output"],
        f"{inputs}_tokens_details": {"cached_tokens": counts["cached"], "cache_write_tokens": counts["written"]},
        f"{outputs}_tokens_details": {"reasoning_tokens": counts["reasoned"]},
    }
