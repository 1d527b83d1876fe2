"""The events of a run, as Hermes names them: a translation of the log, event by event."""

from collections.abc import Callable, Sequence
from typing import Any

import orjson

from gateway_app.api.runs.statuses import RunStatus, ended_status
from gateway_app.api.tool_calls import (
    Calls,
    approval_answer,
    approval_request,
    is_failure,
)
from responses_app.eventlog import Segment
from responses_app.protocol import events
from responses_app.protocol.events import (
    APPROVAL_REQUESTED,
    APPROVAL_RESOLVED,
    TOOL_FINISHED,
    TOOL_STARTED,
    Event,
)
from responses_app.protocol.ids import run_id_of
from responses_app.protocol.response_object import ResponseBody
from responses_app.services.history.transcript import text_of_output, unanswered_calls
from responses_app.streaming.renderers import TimedView

Told = dict[str, Any]


class RunEvents:
    """What each event of the log is called here, if it is told at all; one in, at most one out."""

    def __init__(self) -> None:
        self._calls = Calls()

    def render(self, event: Event) -> Told | None:
        self._calls.note(event)
        step = _STEPS.get(event["type"])
        return None if step is None else step(self, event)

    def _thought(self, event: Event) -> Told | None:
        return _told("reasoning.available", text=event["text"]) if event["text"] else None

    def _started(self, event: Event) -> Told | None:
        call = self._calls.started(event)
        if call is None:
            return None
        return _told("tool.started", tool=call.name, preview=call.preview, call_id=call.call_id)

    def _finished(self, event: Event) -> Told | None:
        call = self._calls.finished(event)
        if call is None:
            return None
        took = {"duration": event["duration_ms"] / 1000, "error": is_failure(event)}
        return _told("tool.completed", tool=call.name, **took, call_id=call.call_id)

    def _asked(self, event: Event) -> Told | None:
        call = self._calls.of(event)
        return None if call is None else _told("approval.request", **approval_request(call, event))

    def _answered(self, event: Event) -> Told | None:
        call = self._calls.of(event)
        return None if call is None else _told("approval.responded", **approval_answer(call, event))

    def _ended(self, event: Event) -> Told:
        return ended_event(event["response"])


def ended_event(body: ResponseBody) -> Told:
    reason = (body["incomplete_details"] or {}).get("reason")
    status = ended_status(body["status"], reason)
    said = {"output": text_of_output(body["output"]), "usage": body["usage"]}
    if status is RunStatus.COMPLETED:
        cut = {"partial": True, "incomplete_details": body["incomplete_details"]} if reason else {}
        calls = unanswered_calls(body["output"])
        return _told("run.completed", **said, **cut, **({"tool_calls": calls} if calls else {}))
    if status is RunStatus.CANCELLED:
        return _told("run.cancelled", **said)
    return _told("run.failed", error=failure(body["error"], reason), **said)


def failure(error: dict[str, Any] | None, incomplete_reason: str | None) -> str:
    return str(error["message"]) if error else f"The run ended early: {incomplete_reason}."


def _told(name: str, **fields: Any) -> Told:
    return {"event": name, **fields}


_STEPS: dict[str, Callable[[RunEvents, Event], Told | None]] = {
    events.TEXT_DELTA: lambda _, event: _told("message.delta", delta=event["delta"]),
    events.REFUSAL_DELTA: lambda _, event: _told("message.delta", delta=event["delta"]),
    events.SUMMARY_DELTA: lambda _, event: _told("reasoning.delta", delta=event["delta"]),
    events.SUMMARY_DONE: RunEvents._thought,
    TOOL_STARTED: RunEvents._started,
    TOOL_FINISHED: RunEvents._finished,
    APPROVAL_REQUESTED: RunEvents._asked,
    APPROVAL_RESOLVED: RunEvents._answered,
    **dict.fromkeys(events.TERMINAL_TYPES, RunEvents._ended),
}


class RunEventsView(TimedView):
    """``data:`` lines only; the ``id:`` is the position in the log, whichever reader asks."""

    done = b": stream closed\n\n"

    def __init__(self, response_id: str, after: int) -> None:
        super().__init__()
        self._run_id = run_id_of(response_id)
        self._after = after
        self._events = RunEvents()

    def render(self, segments: Sequence[Segment]) -> bytes:
        return b"".join(
            b"id: %d\ndata: %s\n\n"
            % (position, orjson.dumps({**told, "run_id": self._run_id, "timestamp": at}))
            for position, at, event in self.events(segments)
            if (told := self._events.render(event)) is not None and position > self._after
        )
