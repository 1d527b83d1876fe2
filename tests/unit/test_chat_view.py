"""The chat view is a pure function of the log: however it is cut, and however often work was taken up again."""

import json
from typing import Any

import pytest

from gateway_app.api.chat.renderers import ChatView
from responses_app.eventlog import Numbering, Segment
from responses_app.protocol.builder import OutputBuilder
from responses_app.protocol.events import TOOL_CALLED, TOOL_NAMED, Event
from responses_app.protocol.response_object import initial_body
from responses_app.protocol.status import Status

CLIENTS = [{"type": "function", "name": "mine", "description": None, "parameters": None, "strict": None}]
STARTED, FINISHED = "hermes.tool.started", "hermes.tool.finished"


class Log:
    def __init__(self, **echo: Any) -> None:
        body = initial_body(
            "resp_1", model="m", created_at=1, status=Status.IN_PROGRESS, echo={"tools": CLIENTS, **echo}
        )
        self.builder = OutputBuilder("resp_1", [])
        self.builder.add({"type": "response.created", "response": body})

    def serve(self, call_id: str, name: str, *, starts: int = 1, is_over: bool = True) -> None:
        """A call of the server's tool; more than one start is one that ran again after a crash."""
        self.builder.call_started(call_id, name)
        self.builder.call_arguments(call_id, '{"command": "ls  -l"}')
        self.builder.call_finished(call_id)
        place = self.builder.output_index_of(call_id)
        self.builder.add({"type": TOOL_CALLED, "call_id": call_id, "name": name, "output_index": place})
        for _ in range(starts):
            self.builder.add({"type": STARTED, "call_id": call_id, "name": name})
        if is_over:
            finished: Event = {"type": FINISHED, "call_id": call_id, "name": name}
            finished["status"] = "completed"
            finished["duration_ms"] = 1
            self.builder.add(finished)
            self.builder.tool_output(call_id, "made")

    def end(self, status: Status = Status.COMPLETED) -> list[Event]:
        self.builder.finish(status)
        return self.builder.take()


def rendered(events: list[Event], size: int, *, is_detailed: bool = False) -> bytes:
    numbering, view = Numbering("resp_1", attempt=1), ChatView(wants_usage=True, is_detailed=is_detailed)
    segments: list[Segment] = [numbering.seal(events[at : at + size]) for at in range(0, len(events), size)]
    return b"".join(view.render([segment]) for segment in segments)


def progress(stream: bytes) -> list[tuple[str, str]]:
    frames = [frame for frame in stream.split(b"\n\n") if frame.startswith(b"event: hermes.tool.progress\n")]
    payloads = [json.loads(frame.split(b"data: ")[1]) for frame in frames]
    return [(payload["toolCallId"], payload["status"]) for payload in payloads]


@pytest.mark.parametrize("is_detailed", [False, True])
def test_wherever_the_log_is_cut_the_chunks_are_the_same(is_detailed: bool) -> None:
    log = Log()
    log.builder.reasoning("hm")
    log.builder.text("so ")
    log.serve("c1", "terminal")
    log.builder.text("then")
    log.builder.call_started("c2", "mine")
    log.builder.call_arguments("c2", "{}")
    log.builder.call_finished("c2")
    events = log.end()
    whole = rendered(events, len(events), is_detailed=is_detailed)
    assert progress(whole) == [("c1", "running"), ("c1", "completed")]
    assert b'"label":"ls -l"' in whole
    assert b'"finish_reason":"tool_calls"' in whole
    for size in (1, 2, 3):
        assert rendered(events, size, is_detailed=is_detailed) == whole


@pytest.mark.parametrize("is_detailed", [False, True])
def test_a_call_that_ran_again_after_a_crash_is_shown_once(is_detailed: bool) -> None:
    log = Log()
    log.serve("c1", "terminal", starts=3)
    assert progress(rendered(log.end(), 2, is_detailed=is_detailed)) == [("c1", "running"), ("c1", "completed")]


def test_a_call_that_was_under_way_when_the_turn_ended_is_over_too() -> None:
    log = Log()
    log.serve("c1", "terminal", is_over=False)
    assert progress(rendered(log.end(Status.CANCELLED), 2)) == [("c1", "running"), ("c1", "completed")]


def test_an_end_without_a_start_says_nothing() -> None:
    log = Log()
    log.serve("c1", "terminal", starts=0)
    log.serve("c2", "_internal")
    assert progress(rendered(log.end(), 2)) == []


def write(log: Log, name: str, chars: int) -> None:
    """The model writes the arguments of a call, eight characters at a time."""
    log.builder.call_started("c1", name)
    index = log.builder.output_index_of("c1")
    log.builder.add({"type": TOOL_NAMED, "call_id": "c1", "name": name, "output_index": index})
    for _ in range(chars // 8):
        log.builder.call_arguments("c1", "12345678")


@pytest.mark.parametrize("is_detailed", [False, True])
def test_long_arguments_show_progress_while_they_are_written(is_detailed: bool) -> None:
    log = Log()
    write(log, "write_file", 2000)
    log.builder.call_finished("c1")
    index = log.builder.output_index_of("c1")
    log.builder.add({"type": TOOL_CALLED, "call_id": "c1", "name": "write_file", "output_index": index})
    log.builder.add({"type": STARTED, "call_id": "c1", "name": "write_file"})
    events = log.end(Status.CANCELLED)
    whole = rendered(events, len(events), is_detailed=is_detailed)
    assert progress(whole) == [("c1", "running")] * 5 + [("c1", "completed")]
    assert b'"argumentChars":64,' in whole or b'"argumentChars":64}' in whole
    for size in (1, 3):
        assert rendered(events, size, is_detailed=is_detailed) == whole


def test_short_arguments_show_none() -> None:
    log = Log()
    write(log, "terminal", 40)
    log.builder.call_finished("c1")
    assert progress(rendered(log.end(), 2)) == []


def test_a_call_that_was_cut_off_in_its_arguments_is_over_too() -> None:
    log = Log()
    write(log, "write_file", 100)
    log.builder.call_finished("c1", is_cut=True)
    assert progress(rendered(log.end(), 2)) == [("c1", "running"), ("c1", "completed")]
