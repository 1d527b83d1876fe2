"""The events of a run, as Hermes names them: a translation of the log, event by event."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any

import orjson

from gateway_app.api.runs.statuses import RunStatus, ended_status
from gateway_app.api.tool_calls import (
    ToolCallTracker,
    approval_request_fields,
    approval_response_fields,
    is_failure,
)
from responses_app.eventlog import Segment
from responses_app.protocol import events
from responses_app.protocol.events import Event
from responses_app.protocol.ids import run_id_of
from responses_app.protocol.response_object import ResponseBody
from responses_app.services.history.transcript import text_of_output, unanswered_calls
from responses_app.streaming.renderers import TimedView

Fields = dict[str, Any]


class RunEvent(StrEnum):
    MESSAGE_DELTA = "message.delta"
    REASONING_DELTA = "reasoning.delta"
    REASONING_AVAILABLE = "reasoning.available"
    TOOL_STARTED = "tool.started"
    TOOL_COMPLETED = "tool.completed"
    APPROVAL_REQUEST = "approval.request"
    APPROVAL_RESPONDED = "approval.responded"
    RUN_COMPLETED = "run.completed"
    RUN_FAILED = "run.failed"
    RUN_CANCELLED = "run.cancelled"


class RunEventRenderer:
    """Turns each event of the log into at most one event of a run."""

    def __init__(self) -> None:
        self._calls = ToolCallTracker()

    def render(self, event: Event) -> Fields | None:
        self._calls.record(event)
        step = _STEPS.get(event["type"])
        if step is None:
            return None
        return step(self, event)

    def _message_delta(self, event: Event) -> Fields:
        return {"event": RunEvent.MESSAGE_DELTA, "delta": event["delta"]}

    def _reasoning_delta(self, event: Event) -> Fields:
        return {"event": RunEvent.REASONING_DELTA, "delta": event["delta"]}

    def _reasoning_done(self, event: Event) -> Fields | None:
        if not event["text"]:
            return None
        return {"event": RunEvent.REASONING_AVAILABLE, "text": event["text"]}

    def _tool_started(self, event: Event) -> Fields | None:
        call = self._calls.started(event)
        if call is None:
            return None
        return {
            "event": RunEvent.TOOL_STARTED,
            "tool": call.name,
            "preview": call.preview,
            "call_id": call.call_id,
        }

    def _tool_finished(self, event: Event) -> Fields | None:
        call = self._calls.finished(event)
        if call is None:
            return None
        return {
            "event": RunEvent.TOOL_COMPLETED,
            "tool": call.name,
            "duration": event["duration_ms"] / 1000,
            "error": is_failure(event),
            "call_id": call.call_id,
        }

    def _approval_requested(self, event: Event) -> Fields | None:
        call = self._calls.call_of(event)
        if call is None:
            return None
        return {"event": RunEvent.APPROVAL_REQUEST} | approval_request_fields(call, event)

    def _approval_resolved(self, event: Event) -> Fields | None:
        call = self._calls.call_of(event)
        if call is None:
            return None
        return {"event": RunEvent.APPROVAL_RESPONDED} | approval_response_fields(call, event)

    def _ended(self, event: Event) -> Fields:
        return ended_event(event["response"])


_STEPS: dict[str, Callable[[RunEventRenderer, Event], Fields | None]] = {
    events.TEXT_DELTA: RunEventRenderer._message_delta,
    events.REFUSAL_DELTA: RunEventRenderer._message_delta,
    events.SUMMARY_DELTA: RunEventRenderer._reasoning_delta,
    events.SUMMARY_DONE: RunEventRenderer._reasoning_done,
    events.REASONING_DELTA: RunEventRenderer._reasoning_delta,
    events.REASONING_DONE: RunEventRenderer._reasoning_done,
    events.TOOL_STARTED: RunEventRenderer._tool_started,
    events.TOOL_FINISHED: RunEventRenderer._tool_finished,
    events.APPROVAL_REQUESTED: RunEventRenderer._approval_requested,
    events.APPROVAL_RESOLVED: RunEventRenderer._approval_resolved,
    events.COMPLETED: RunEventRenderer._ended,
    events.FAILED: RunEventRenderer._ended,
    events.INCOMPLETE: RunEventRenderer._ended,
}


def ended_event(body: ResponseBody) -> Fields:
    """The last event of a run; its fields are also part of the run's own object."""
    reason = (body["incomplete_details"] or {}).get("reason")
    status = ended_status(body["status"], reason)
    fields: Fields = {"output": text_of_output(body["output"]), "usage": body["usage"]}
    if status is RunStatus.CANCELLED:
        return {"event": RunEvent.RUN_CANCELLED} | fields
    if status is not RunStatus.COMPLETED:
        failed = {"event": RunEvent.RUN_FAILED, "error": failure_message(body["error"], reason)}
        return failed | fields
    if reason:
        fields["partial"] = True
        fields["incomplete_details"] = body["incomplete_details"]
    calls = unanswered_calls(body["output"])
    if calls:
        fields["tool_calls"] = calls
    return {"event": RunEvent.RUN_COMPLETED} | fields


def failure_message(error: dict[str, Any] | None, incomplete_reason: str | None) -> str:
    if error:
        return str(error["message"])
    return f"The run ended early: {incomplete_reason}."


class RunEventsView(TimedView):
    """``data:`` lines only; ``id:`` and ``seq`` are the position in the log, the same for every reader."""

    done = b": stream closed\n\n"

    def __init__(self, response_id: str, after: int) -> None:
        super().__init__()
        self._run_id = run_id_of(response_id)
        self._after = after
        self._renderer = RunEventRenderer()

    def render(self, segments: Sequence[Segment]) -> bytes:
        frames: list[bytes] = []
        for position, at, event in self.events(segments):
            fields = self._renderer.render(event)
            if fields is None or position <= self._after:
                continue
            fields["run_id"] = self._run_id
            fields["timestamp"] = at
            fields["seq"] = position
            frames.append(b"id: %d\ndata: %s\n\n" % (position, orjson.dumps(fields)))
        return b"".join(frames)
