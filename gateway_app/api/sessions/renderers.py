"""The stream of a session's chat: the log of one turn in the events Hermes frontends listen to."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import orjson

from gateway_app.api.runs.renderers import failure
from gateway_app.api.runs.statuses import RunStatus, ended_status
from gateway_app.api.tool_calls import (
    Call,
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
from responses_app.protocol.items import Item
from responses_app.protocol.response_object import ResponseBody
from responses_app.services.history.transcript import messages_of, text_of_output
from responses_app.streaming.renderers import TimedView

THINKING = "_thinking"
Told = tuple[str, dict[str, Any]]


class ChatView(TimedView):
    """Each event of the log in as many of these as it takes; ``id:`` is where a run's events go on."""

    done = b""

    def __init__(self, response_id: str, session_id: str, input_items: list[Item]) -> None:
        super().__init__()
        self._stamp = {"session_id": session_id, "run_id": run_id_of(response_id)}
        self._message_id = f"msg_{run_id_of(response_id)[4:]}"
        self._asked = messages_of(input_items)
        self._calls = Calls()
        self._seq = 0

    def render(self, segments: Sequence[Segment]) -> bytes:
        return b"".join(
            self._frames(position, at, event) for position, at, event in self.events(segments)
        )

    def _frames(self, position: int, at: float, event: Event) -> bytes:
        self._calls.note(event)
        step = _STEPS.get(event["type"])
        frames = (
            []
            if step is None
            else [self._frame(name, fields, at) for name, fields in step(self, event)]
        )
        return b"".join(frames[:-1]) + b"".join(
            b"id: %d\n%s" % (position, last) for last in frames[-1:]
        )

    def _frame(self, name: str, fields: dict[str, Any], at: float) -> bytes:
        self._seq += 1
        data = orjson.dumps({**fields, **self._stamp, "seq": self._seq, "ts": at})
        return b"event: %s\ndata: %s\n\n" % (name.encode(), data)

    # -- the events ---------------------------------------------------------------------
    def _created(self, event: Event) -> Iterator[Told]:
        said = next(
            (message for message in reversed(self._asked) if message["role"] == "user"), None
        )
        user_message = {"role": "user", "content": said["content"] if said else ""}
        yield "run.started", {"user_message": user_message, "runtime": runtime(event["response"])}
        yield "message.started", {"message": {"id": self._message_id, "role": "assistant"}}

    def _said(self, event: Event) -> Iterator[Told]:
        yield "assistant.delta", {"message_id": self._message_id, "delta": event["delta"]}

    def _thought(self, event: Event) -> Iterator[Told]:
        yield (
            "tool.progress",
            {"message_id": self._message_id, "tool_name": THINKING, "delta": event["delta"]},
        )

    def _started(self, event: Event) -> Iterator[Told]:
        call = self._calls.started(event)
        if call is not None:
            yield "tool.started", self._tool(call)

    def _finished(self, event: Event) -> Iterator[Told]:
        call = self._calls.finished(event)
        if call is not None:
            took = {"duration": event["duration_ms"] / 1000}
            yield "tool.failed" if is_failure(event) else "tool.completed", self._tool(call) | took

    def _approval_asked(self, event: Event) -> Iterator[Told]:
        call = self._calls.of(event)
        if call is not None:
            yield "approval.request", approval_request(call, event)

    def _approval_answered(self, event: Event) -> Iterator[Told]:
        call = self._calls.of(event)
        if call is not None:
            yield "approval.responded", approval_answer(call, event)

    def _ended(self, event: Event) -> Iterator[Told]:
        body = event["response"]
        outcome = how_it_ended(body)
        if outcome["failed"]:
            yield "error", {"message": _reason(body)}
        else:
            said = {"message_id": self._message_id, "content": text_of_output(body["output"])}
            yield "assistant.completed", {**said, **outcome, "runtime": runtime(body)}
            messages = [*self._asked, *messages_of(body["output"])]
            yield (
                "run.completed",
                {"messages": messages, "usage": body["usage"], "runtime": runtime(body)},
            )
        yield "done", {}

    def _tool(self, call: Call) -> dict[str, Any]:
        named = {
            "message_id": self._message_id,
            "tool_name": call.name,
            "tool_call_id": call.call_id,
        }
        return {**named, "preview": call.preview, "args": call.parsed}


def runtime(body: ResponseBody) -> dict[str, Any]:
    return {"model": body["model"]}


def how_it_ended(body: ResponseBody) -> dict[str, bool]:
    status = ended_status(body["status"], (body["incomplete_details"] or {}).get("reason"))
    is_whole = body["status"] == "completed"
    return {
        "completed": is_whole,
        "partial": not is_whole,
        "interrupted": status in (RunStatus.CANCELLED, RunStatus.INTERRUPTED),
        "failed": status is RunStatus.FAILED,
    }


def _reason(body: ResponseBody) -> str:
    return failure(body["error"], (body["incomplete_details"] or {}).get("reason"))


_STEPS: dict[str, Callable[[ChatView, Event], Iterator[Told]]] = {
    events.CREATED: ChatView._created,
    events.TEXT_DELTA: ChatView._said,
    events.REFUSAL_DELTA: ChatView._said,
    events.SUMMARY_DELTA: ChatView._thought,
    TOOL_STARTED: ChatView._started,
    TOOL_FINISHED: ChatView._finished,
    APPROVAL_REQUESTED: ChatView._approval_asked,
    APPROVAL_RESOLVED: ChatView._approval_answered,
    **dict.fromkeys(events.TERMINAL_TYPES, ChatView._ended),
}
