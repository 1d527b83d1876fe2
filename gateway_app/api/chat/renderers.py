"""The log as chunks of a chat completion."""

from collections.abc import Callable, Sequence
from typing import Any

import orjson

from gateway_app.api.chat.payloads import (
    call_without_arguments,
    client_tool_names_of,
    envelope,
    failure_of,
    finish_reason,
    logprobs,
    problem_of,
    reasoning_fields,
    usage,
)
from gateway_app.api.chat.tool_progress import Progress, ToolProgress
from gateway_app.providers.openai.chat_completions.annotations import to_chat
from responses_app.eventlog import Segment
from responses_app.protocol import events
from responses_app.protocol.errors import ApiError
from responses_app.protocol.events import Event
from responses_app.protocol.failures import TurnFailed
from responses_app.protocol.items import CALLS
from responses_app.protocol.response_object import ResponseBody
from responses_app.protocol.sse import decode_frame, split_frames
from responses_app.protocol.status import Status
from responses_app.protocol.text_frames import encoded_text
from responses_app.streaming.renderers import LogView

Frames = list[bytes]
Fields = dict[str, Any]
_MARK = "\ue000"
# They repeat what the chunks before them have sent, which may be long: these are not parsed.
_REPEATING = (
    events.TEXT_DONE,
    events.REFUSAL_DONE,
    events.PART_DONE,
    events.REASONING_DONE,
    events.SUMMARY_DONE,
    events.SUMMARY_PART_DONE,
)
_WITHOUT_CHUNK = tuple([b"event: %b\n" % kind.encode() for kind in _REPEATING])


class ChatView(LogView):
    def __init__(self, *, wants_usage: bool, is_detailed: bool) -> None:
        self._wants_usage = wants_usage
        self._progress = ToolProgress(is_detailed=is_detailed)
        self._envelope: Fields = {}
        self._client_tools: set[str] = set()
        self._calls: dict[int, int] = {}  # output index of a client's call -> its index in the chat
        self._dropped = (
            ""  # the name of a call that was cut off after the client received its start
        )
        self._is_over = False
        # A chunk with a text, around the text.
        self._before_text = b""
        self._behind_text = b""

    def render(self, segments: Sequence[Segment]) -> bytes:
        frames: Frames = []
        for segment in segments:
            for frame in split_frames(segment.data):
                text = encoded_text(frame)
                if text is not None and not self._is_over and not self._dropped:
                    frames.append(b"%b%b%b" % (self._before_text, text, self._behind_text))
                elif not frame.startswith(_WITHOUT_CHUNK):
                    frames += self._frames(decode_frame(frame))
        return b"".join(frames)

    def _frames(self, event: Event) -> Frames:
        if self._is_over:
            return []
        kind = event["type"]
        if kind in events.TERMINAL_TYPES:
            return self._end(event["response"])
        frames: Frames = []
        step = _STEPS.get(kind)
        if step is not None:
            frames += step(self, event)
        for progress in self._progress.render(event):
            frames.append(self._progress_frame(progress))
        if self._dropped and frames:
            return self._fail(_call_dropped(self._dropped))
        return frames

    # -- events of the log --------------------------------------------------------------
    def _created(self, event: Event) -> Frames:
        body: ResponseBody = event["response"]
        self._envelope = envelope(body, "chat.completion.chunk")
        if self._wants_usage:
            self._envelope["usage"] = None
        self._client_tools = client_tool_names_of(body)
        frame = self._chunk({"content": _MARK})
        self._before_text, _, self._behind_text = frame.partition(orjson.dumps(_MARK))
        return [self._chunk({"role": "assistant"})]

    def _text_delta(self, event: Event) -> Frames:
        choice = _choice({"content": event["delta"]})
        choice["logprobs"] = logprobs(event["logprobs"])
        return [self._chunk_of(choice)]

    def _annotation_added(self, event: Event) -> Frames:
        return [self._chunk({"annotations": [to_chat(event["annotation"])]})]

    def _refusal_delta(self, event: Event) -> Frames:
        return [self._chunk({"refusal": event["delta"]})]

    def _reasoning_delta(self, event: Event) -> Frames:
        return [self._chunk(reasoning_fields(event["delta"]))]

    def _item_added(self, event: Event) -> Frames:
        item = event["item"]
        if item["type"] not in CALLS or item["name"] not in self._client_tools:
            return []
        index = len(self._calls)
        self._calls[event["output_index"]] = index
        return [self._chunk({"tool_calls": [{"index": index} | call_without_arguments(item)]})]

    def _arguments_delta(self, event: Event) -> Frames:
        return self._call_delta(event, {"function": {"arguments": event["delta"]}})

    def _custom_input_delta(self, event: Event) -> Frames:
        return self._call_delta(event, {"custom": {"input": event["delta"]}})

    def _call_delta(self, event: Event, delta: Fields) -> Frames:
        index = self._calls.get(event["output_index"])
        if index is None:
            return []
        return [self._chunk({"tool_calls": [{"index": index} | delta]})]

    def _item_done(self, event: Event) -> Frames:
        if event["output_index"] in self._calls and event["item"]["status"] == "incomplete":
            self._dropped = event["item"]["name"]
        return []

    def _end(self, body: ResponseBody) -> Frames:
        frames = [self._progress_frame(progress) for progress in self._progress.end()]
        failure = failure_of(body)
        if failure is None and self._dropped and body["status"] == Status.COMPLETED:
            failure = _call_dropped(self._dropped)
        if failure is not None:
            return frames + self._fail(failure)
        self._is_over = True
        choice = _choice({})
        choice["finish_reason"] = finish_reason(body)
        last = self._envelope | {"choices": [choice]}
        problem = problem_of(body)
        if problem is not None:
            last["hermes"] = problem
        frames.append(_frame(last))
        if self._wants_usage and body["usage"] is not None:
            frames.append(_frame(self._envelope | {"choices": [], "usage": usage(body)}))
        return frames

    def _fail(self, error: ApiError) -> Frames:
        """A top-level error: SDKs raise it, also in the middle of a stream."""
        self._is_over = True
        return [_frame(error.body())]

    # -- frames -------------------------------------------------------------------------
    def _chunk(self, delta: Fields) -> bytes:
        return self._chunk_of(_choice(delta))

    def _chunk_of(self, choice: Fields) -> bytes:
        return _frame(self._envelope | {"choices": [choice]})

    def _progress_frame(self, progress: Progress) -> bytes:
        """Also a chunk, without choices: SDKs ignore the name of an event and parse every frame."""
        name, fields = progress
        chunk = fields | self._envelope
        chunk["choices"] = []
        return b"event: %s\n" % name.encode() + _frame(chunk)


_STEPS: dict[str, Callable[[ChatView, Event], Frames]] = {
    events.CREATED: ChatView._created,
    events.TEXT_DELTA: ChatView._text_delta,
    events.ANNOTATION_ADDED: ChatView._annotation_added,
    events.REFUSAL_DELTA: ChatView._refusal_delta,
    events.SUMMARY_DELTA: ChatView._reasoning_delta,
    events.REASONING_DELTA: ChatView._reasoning_delta,
    events.ITEM_ADDED: ChatView._item_added,
    events.ITEM_DONE: ChatView._item_done,
    events.ARGUMENTS_DELTA: ChatView._arguments_delta,
    events.CUSTOM_INPUT_DELTA: ChatView._custom_input_delta,
}


def _choice(delta: Fields) -> Fields:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}


def _frame(payload: Fields) -> bytes:
    return b"data: %s\n\n" % orjson.dumps(payload)


def _call_dropped(name: str) -> TurnFailed:
    message = (
        f"The model was cut off in its call of {name}, which you had begun to receive. Ask again."
    )
    return TurnFailed(message, "tool_call_dropped", 502, has_run_tools=False)
