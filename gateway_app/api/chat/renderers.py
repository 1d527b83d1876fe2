"""The log as chunks of a chat completion."""

from collections.abc import Callable, Sequence
from typing import Any

import orjson

from gateway_app.api.chat.payloads import (
    call_head,
    client_names,
    envelope,
    failure_of,
    finish_reason,
    logprobs,
    trouble_of,
    usage,
)
from gateway_app.api.chat.tool_progress import ToolProgress
from responses_app.eventlog import Segment
from responses_app.protocol import events
from responses_app.protocol.errors import ApiError
from responses_app.protocol.events import CREATED, TERMINAL_TYPES, Event
from responses_app.protocol.failures import TurnFailed
from responses_app.protocol.items import CALLS, TokenLogprob
from responses_app.protocol.response_object import ResponseBody
from responses_app.protocol.sse import decode_frames
from responses_app.protocol.status import Status
from responses_app.streaming.renderers import LogView

_DROPPED = "The model was cut off in its call of {}, which you had begun to receive. Ask again."
Frames = list[bytes]


class ChatView(LogView):
    def __init__(self, *, wants_usage: bool, is_detailed: bool) -> None:
        self._wants_usage = wants_usage
        self._progress = ToolProgress(is_detailed=is_detailed)
        self._envelope: dict[str, Any] = {}
        self._client_names: set[str] = set()
        self._calls: dict[int, int] = {}  # place of a client's call -> its number among those
        self._dropped = ""  # a call that was cut off, and can't be taken back
        self._is_over = False

    def render(self, segments: Sequence[Segment]) -> bytes:
        events = decode_frames(segment.data for segment in segments)
        return b"".join(frame for event in events for frame in self._frames(event))

    def _frames(self, event: Event) -> Frames:
        if self._is_over:
            return []
        kind = event["type"]
        if kind in TERMINAL_TYPES:
            return self._end(event["response"])
        step = _STEPS.get(kind)
        said = step(self, event) if step is not None else []
        told = [self._tool_frame(*told) for told in self._progress.note(event)]
        if self._dropped and (said or told):
            return self._fail(_dropped_call(self._dropped))
        return [*said, *told]

    # -- the steps ----------------------------------------------------------------------
    def _begin(self, event: Event) -> Frames:
        body: ResponseBody = event["response"]
        self._envelope = envelope(body, "chat.completion.chunk") | (
            {"usage": None} if self._wants_usage else {}
        )
        self._client_names = client_names(body)
        return self._delta(role="assistant")

    def _said(self, event: Event) -> Frames:
        return [self._chunk({"content": event["delta"]}, entries=event["logprobs"])]

    def _call_started(self, event: Event) -> Frames:
        item = event["item"]
        if item["type"] not in CALLS or item["name"] not in self._client_names:
            return []
        number = self._calls[event["output_index"]] = len(self._calls)
        return self._delta(tool_calls=[{"index": number, **call_head(item)}])

    def _written(self, kind: str, field: str, event: Event) -> Frames:
        number = self._calls.get(event["output_index"])
        if number is None:
            return []
        return self._delta(tool_calls=[{"index": number, kind: {field: event["delta"]}}])

    def _item_done(self, event: Event) -> Frames:
        if event["output_index"] in self._calls and event["item"]["status"] == "incomplete":
            self._dropped = event["item"]["name"]
        return []

    def _end(self, body: ResponseBody) -> Frames:
        failure = failure_of(body)
        if failure is None and self._dropped and body["status"] == Status.COMPLETED:
            failure = _dropped_call(self._dropped)
        told = [self._tool_frame(*told) for told in self._progress.end()]
        if failure is not None:
            return [*told, *self._fail(failure)]
        self._is_over = True
        trouble = trouble_of(body)
        more: dict[str, Any] = {} if trouble is None else {"hermes": trouble}
        frames = [*told, self._chunk({}, finish_reason(body), **more)]
        if self._wants_usage and body["usage"] is not None:
            frames.append(_frame({**self._envelope, "choices": [], "usage": usage(body)}))
        return frames

    def _fail(self, error: ApiError) -> Frames:
        """A top-level error: SDKs raise it, in the middle of a stream too."""
        self._is_over = True
        return [_frame(error.body())]

    # -- the frames ---------------------------------------------------------------------
    def _delta(self, **delta: Any) -> Frames:
        return [self._chunk(delta)]

    def _chunk(
        self,
        delta: dict[str, Any],
        reason: str | None = None,
        entries: Sequence[TokenLogprob] = (),
        **more: Any,
    ) -> bytes:
        choice = {
            "index": 0,
            "delta": delta,
            "logprobs": logprobs(entries),
            "finish_reason": reason,
        }
        return _frame({**self._envelope, "choices": [choice], **more})

    def _tool_frame(self, name: str, told: dict[str, Any]) -> bytes:
        """A chunk without choices besides: SDKs do not look at the event's name and take every frame for one."""
        return b"event: %s\n" % name.encode() + _frame({**told, **self._envelope, "choices": []})


def _frame(payload: dict[str, Any]) -> bytes:
    return b"data: %s\n\n" % orjson.dumps(payload)


def _dropped_call(name: str) -> TurnFailed:
    return TurnFailed(_DROPPED.format(name), "tool_call_dropped", 502, has_run_tools=False)


_STEPS: dict[str, Callable[[ChatView, Event], Frames]] = {
    CREATED: ChatView._begin,
    events.TEXT_DELTA: ChatView._said,
    events.REFUSAL_DELTA: lambda view, event: view._delta(refusal=event["delta"]),
    events.SUMMARY_DELTA: lambda view, event: view._delta(reasoning_content=event["delta"]),
    events.ITEM_ADDED: ChatView._call_started,
    events.ITEM_DONE: ChatView._item_done,
    events.ARGUMENTS_DELTA: lambda view, event: view._written("function", "arguments", event),
    events.CUSTOM_INPUT_DELTA: lambda view, event: view._written("custom", "input", event),
}
