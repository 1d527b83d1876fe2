"""The stream of a session's chat: the log of one turn in the events Hermes frontends read."""

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import Any

import orjson

from gateway_app.api.runs.renderers import failure_message
from gateway_app.api.runs.statuses import RunStatus, ended_status
from gateway_app.api.tool_calls import (
    ToolCall,
    ToolCallTracker,
    approval_request_fields,
    approval_response_fields,
    is_failure,
)
from responses_app.eventlog import Segment
from responses_app.protocol import events
from responses_app.protocol.events import Event
from responses_app.protocol.ids import run_id_of
from responses_app.protocol.items import Item
from responses_app.protocol.response_object import ResponseBody
from responses_app.protocol.status import Status
from responses_app.services.history.transcript import messages_of, text_of_output
from responses_app.streaming.renderers import TimedView

THINKING = "_thinking"
Fields = dict[str, Any]


class SessionEvent(StrEnum):
    RUN_STARTED = "run.started"
    MESSAGE_STARTED = "message.started"
    ASSISTANT_DELTA = "assistant.delta"
    TOOL_PROGRESS = "tool.progress"
    TOOL_STARTED = "tool.started"
    TOOL_COMPLETED = "tool.completed"
    TOOL_FAILED = "tool.failed"
    APPROVAL_REQUEST = "approval.request"
    APPROVAL_RESPONDED = "approval.responded"
    ASSISTANT_COMPLETED = "assistant.completed"
    RUN_COMPLETED = "run.completed"
    ERROR = "error"
    DONE = "done"


Rendered = Iterator[tuple[SessionEvent, Fields]]


class SessionChatView(TimedView):
    """Each event of the log may become several; ``id:`` is its position, as in the run's events."""

    done = b""

    def __init__(self, response_id: str, session_id: str, input_items: list[Item]) -> None:
        super().__init__()
        run_id = run_id_of(response_id)
        self._session_id = session_id
        self._run_id = run_id
        self._message_id = f"msg_{run_id[4:]}"
        self._input = messages_of(input_items)
        self._calls = ToolCallTracker()
        self._seq = 0

    def render(self, segments: Sequence[Segment]) -> bytes:
        frames: list[bytes] = []
        for position, at, event in self.events(segments):
            self._calls.record(event)
            step = _STEPS.get(event["type"])
            if step is None:
                continue
            rendered = [self._frame(name, fields, at) for name, fields in step(self, event)]
            if rendered:
                # Only the last one: a client that resumes after an id has everything before it.
                rendered[-1] = b"id: %d\n%s" % (position, rendered[-1])
                frames += rendered
        return b"".join(frames)

    def _frame(self, name: SessionEvent, fields: Fields, at: float) -> bytes:
        self._seq += 1
        fields["session_id"] = self._session_id
        fields["run_id"] = self._run_id
        fields["seq"] = self._seq
        fields["ts"] = at
        return b"event: %s\ndata: %s\n\n" % (name.encode(), orjson.dumps(fields))

    # -- events of the log ----------------------------------------------------------------
    def _created(self, event: Event) -> Rendered:
        content: Any = ""
        for message in self._input:
            if message["role"] == "user":
                content = message["content"]
        user_message = {"role": "user", "content": content}
        runtime = runtime_fields(event["response"])
        yield SessionEvent.RUN_STARTED, {"user_message": user_message, "runtime": runtime}
        started = {"id": self._message_id, "role": "assistant"}
        yield SessionEvent.MESSAGE_STARTED, {"message": started}

    def _text_delta(self, event: Event) -> Rendered:
        fields = {"message_id": self._message_id, "delta": event["delta"]}
        yield SessionEvent.ASSISTANT_DELTA, fields

    def _reasoning_delta(self, event: Event) -> Rendered:
        fields = {
            "message_id": self._message_id,
            "tool_name": THINKING,
            "delta": event["delta"],
        }
        yield SessionEvent.TOOL_PROGRESS, fields

    def _tool_started(self, event: Event) -> Rendered:
        call = self._calls.started(event)
        if call is not None:
            yield SessionEvent.TOOL_STARTED, self._tool_fields(call)

    def _tool_finished(self, event: Event) -> Rendered:
        call = self._calls.finished(event)
        if call is None:
            return
        fields = self._tool_fields(call)
        fields["duration"] = event["duration_ms"] / 1000
        if is_failure(event):
            yield SessionEvent.TOOL_FAILED, fields
        else:
            yield SessionEvent.TOOL_COMPLETED, fields

    def _approval_requested(self, event: Event) -> Rendered:
        call = self._calls.call_of(event)
        if call is not None:
            yield SessionEvent.APPROVAL_REQUEST, approval_request_fields(call, event)

    def _approval_resolved(self, event: Event) -> Rendered:
        call = self._calls.call_of(event)
        if call is not None:
            yield SessionEvent.APPROVAL_RESPONDED, approval_response_fields(call, event)

    def _ended(self, event: Event) -> Rendered:
        body = event["response"]
        outcome = outcome_fields(body)
        if outcome["failed"]:
            reason = (body["incomplete_details"] or {}).get("reason")
            yield SessionEvent.ERROR, {"message": failure_message(body["error"], reason)}
        else:
            completed: Fields = {
                "message_id": self._message_id,
                "content": text_of_output(body["output"]),
                "runtime": runtime_fields(body),
            }
            yield SessionEvent.ASSISTANT_COMPLETED, completed | outcome
            run = {
                "messages": self._input + messages_of(body["output"]),
                "usage": body["usage"],
                "runtime": runtime_fields(body),
            }
            yield SessionEvent.RUN_COMPLETED, run
        yield SessionEvent.DONE, {}

    def _tool_fields(self, call: ToolCall) -> Fields:
        return {
            "message_id": self._message_id,
            "tool_name": call.name,
            "tool_call_id": call.call_id,
            "preview": call.preview,
            "args": call.parsed,
        }


_STEPS: dict[str, Callable[[SessionChatView, Event], Rendered]] = {
    events.CREATED: SessionChatView._created,
    events.TEXT_DELTA: SessionChatView._text_delta,
    events.REFUSAL_DELTA: SessionChatView._text_delta,
    events.SUMMARY_DELTA: SessionChatView._reasoning_delta,
    events.REASONING_DELTA: SessionChatView._reasoning_delta,
    events.TOOL_STARTED: SessionChatView._tool_started,
    events.TOOL_FINISHED: SessionChatView._tool_finished,
    events.APPROVAL_REQUESTED: SessionChatView._approval_requested,
    events.APPROVAL_RESOLVED: SessionChatView._approval_resolved,
    events.COMPLETED: SessionChatView._ended,
    events.FAILED: SessionChatView._ended,
    events.INCOMPLETE: SessionChatView._ended,
}


def runtime_fields(body: ResponseBody) -> Fields:
    return {"model": body["model"]}


def outcome_fields(body: ResponseBody) -> dict[str, bool]:
    status = ended_status(body["status"], (body["incomplete_details"] or {}).get("reason"))
    is_complete = body["status"] == Status.COMPLETED
    return {
        "completed": is_complete,
        "partial": not is_complete,
        "interrupted": status in (RunStatus.CANCELLED, RunStatus.INTERRUPTED),
        "failed": status in (RunStatus.FAILED, RunStatus.INTERRUPTED),
    }
