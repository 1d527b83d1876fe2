"""The steps of a model's answer as the chunks of a dialect of Chat Completions."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.dialects.dialect import Body, ChatForm, Delta, UsageForm
from tests.support.model_stub import Calls, Finish, Raw, Step, Text, Thought, sse

DONE = b"data: [DONE]\n\n"


@dataclass
class ChatStream:
    form: ChatForm
    body: Body  # of the request
    number: int  # of the answer
    counted: tuple[int, int]  # tokens in and out
    _chunks: int = 0
    _has_calls: bool = False
    steps: list[Step] = field(default_factory=list)

    def add(self, script: Sequence[Step]) -> list[Step]:
        for frame in self.form.opening:
            if isinstance(frame, bytes):
                self.steps.append(Raw(frame))
            else:
                self._deltas([frame])
        for step in script:
            self._add_step(step)
        return self.steps

    def _add_step(self, step: Step) -> None:
        size = self.form.piece_chars
        if isinstance(step, Text):
            self._deltas(self.form.text(step.text, size))
        elif isinstance(step, Thought):
            if self.form.reasoning is not None:
                self._deltas(self.form.reasoning(step.text, size))
        elif isinstance(step, Calls):
            self._has_calls = True
            self._deltas(self.form.calls(step.calls, size))
        elif isinstance(step, Finish):
            self._finish(step)
        else:
            self.steps.append(step)

    def _deltas(self, deltas: Iterable[Delta]) -> None:
        for delta in deltas:
            if self.form.has_role_in_first and not self._chunks:
                delta = {"role": "assistant", **delta}
            self._chunk({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})

    def _finish(self, finish: Finish) -> None:
        reason = self.form.calls_reason if self._has_calls else finish.reason
        usage = self._usage()
        last: dict[str, Any] = {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}
        if self.form.usage is UsageForm.WITH_FINISH:
            last["usage"] = usage
        self._chunk(last | dict(self.form.last_extra))
        is_asked = (self.body.get("stream_options") or {}).get("include_usage")
        if self.form.usage is UsageForm.OWN_CHUNK_IF_ASKED and is_asked:
            self._chunk({"choices": [], "usage": usage})
        for frame in self.form.closing:
            self.steps.append(Raw(frame))
        self.steps.append(Raw(DONE))

    def _usage(self) -> dict[str, int]:
        tokens, output_tokens = self.counted
        return {"prompt_tokens": tokens, "completion_tokens": output_tokens, "total_tokens": tokens + output_tokens}

    def _chunk(self, fields: dict[str, Any]) -> None:
        self._chunks += 1
        head = {"id": f"chatcmpl-{self.number}", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        self.steps.append(Raw(sse(head | dict(self.form.extra) | fields)))
