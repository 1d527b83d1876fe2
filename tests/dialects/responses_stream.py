"""The steps of a model's answer as the events of OpenAI's Responses API."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.dialects.dialect import split
from tests.support.model_stub import Call, Calls, Finish, Raw, Step, Text, Thought, sse

PIECE_CHARS = 4
Item = dict[str, Any]


@dataclass
class ResponsesStream:
    """openai-openapi: ResponseStreamEvent. Every item is announced, filled, and repeated when it is done."""

    number: int  # of the answer
    counted: tuple[int, int]  # tokens in and out
    steps: list[Step] = field(default_factory=list)
    output: list[Item] = field(default_factory=list)
    _open: Item | None = None
    _sent: int = 0

    def add(self, script: Sequence[Step]) -> list[Step]:
        for kind in ("created", "in_progress"):
            self._event(kind, response=self._response("in_progress"))
        for step in script:
            self._add_step(step)
        return self.steps

    def _add_step(self, step: Step) -> None:
        if isinstance(step, Text):
            self._text(step.text)
        elif isinstance(step, Thought):
            self._summary(step.text)
        elif isinstance(step, Calls):
            for call in step.calls:
                self._call(call)
        elif isinstance(step, Finish):
            self._close()
            self._event("completed", response=self._response("completed"))
        else:
            self.steps.append(step)

    def _text(self, text: str) -> None:
        part: Item = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
        if self._open is None or self._open["type"] != "message":
            self._begin({"type": "message", "role": "assistant", "content": [], "status": "in_progress"}, "msg")
            self._at("content_part.added", content_index=0, part=part)
        for piece in split(text, PIECE_CHARS):
            self._at("output_text.delta", content_index=0, delta=piece, logprobs=[], obfuscation="x")
        assert self._open is not None
        before = self._open["content"][0]["text"] if self._open["content"] else ""
        self._open["content"] = [part | {"text": before + text}]

    def _summary(self, text: str) -> None:
        """Reasoning is encrypted, for requests that are not stored; what can be read is a summary of it."""
        item: Item = {"type": "reasoning", "summary": [], "encrypted_content": f"sealed-{self.number}"}
        self._begin(item, "rs")
        part: Item = {"type": "summary_text", "text": ""}
        self._at("reasoning_summary_part.added", summary_index=0, part=part)
        for piece in split(text, PIECE_CHARS):
            self._at("reasoning_summary_text.delta", summary_index=0, delta=piece)
        self._at("reasoning_summary_text.done", summary_index=0, text=text)
        self._at("reasoning_summary_part.done", summary_index=0, part=part | {"text": text})
        item["summary"] = [part | {"text": text}]
        self._close()

    def _call(self, call: Call) -> None:
        item: Item = {"type": "function_call", "call_id": call.call_id, "name": call.name, "arguments": ""}
        self._begin(item, "fc")
        arguments = "".join(call.pieces)
        for piece in split(arguments, PIECE_CHARS):
            self._at("function_call_arguments.delta", delta=piece)
        self._at("function_call_arguments.done", arguments=arguments)
        item["arguments"] = arguments
        self._close()

    def _begin(self, item: Item, prefix: str) -> None:
        self._close()
        item["id"] = f"{prefix}_{self.number}_{len(self.output)}"
        self._open = item
        self.output.append(item)
        self._at("output_item.added", item=dict(item))

    def _close(self) -> None:
        if self._open is None:
            return
        self._open["status"] = "completed"
        self._at("output_item.done", item=self._open)
        self._open = None

    def _at(self, kind: str, **fields: Any) -> None:
        assert self._open is not None
        position = {"output_index": len(self.output) - 1}
        if not kind.startswith("output_item"):
            position["item_id"] = self._open["id"]
        self._event(kind, **position, **fields)

    def _event(self, kind: str, **fields: Any) -> None:
        name = f"response.{kind}"
        self.steps.append(Raw(sse({"type": name, "sequence_number": self._sent, **fields}, name)))
        self._sent += 1

    def _response(self, status: str) -> Item:
        tokens, output_tokens = self.counted
        usage = {
            "input_tokens": tokens,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": output_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": tokens + output_tokens,
        }
        return {
            "id": f"resp_{self.number}",
            "object": "response",
            "created_at": 1,
            "model": "m",
            "status": status,
            "output": list(self.output) if status == "completed" else [],
            "usage": usage if status == "completed" else None,
            "error": None,
            "incomplete_details": None,
        }
