"""What of an upstream's answer is recorded again after a crash: nothing that the log has, and all of the rest."""

from dataclasses import replace
from typing import Any

import pytest

from gateway_app.agent.events import (
    ModelEvent,
    ModelFinished,
    TextDelta,
    UpstreamAbandoned,
    UpstreamPosition,
)
from gateway_app.agent.model_call import ResumePoint
from gateway_app.agent.stream_filters import clean_event
from gateway_app.providers.openai.client import Upstream
from gateway_app.providers.openai.responses.background import POSITION_EVENTS, BackgroundAnswer
from gateway_app.runtime.recorder import Recorder
from gateway_app.runtime.upstream_log import UpstreamLog
from responses_app.protocol.builder import OutputBuilder
from responses_app.protocol.events import ITEM_STATE, UPSTREAM_POSITION, Event
from tests.support.background_stub import text_events
from tests.support.output_builders import RESPONSE_ID, created_event
from tests.support.providers import CALL

STORED = replace(CALL, is_stored=True)
UPSTREAM = Upstream("openai", "m", api_mode="codex_responses")


def long_answer() -> list[dict[str, Any]]:
    """Reasoning in two parts, a message, a search, another message; more than two positions long."""
    events: list[dict[str, Any]] = [{"type": "response.created", "response": {"id": "resp_up1", "output": []}}]

    def item(index: int, given: dict[str, Any], *inner: dict[str, Any]) -> None:
        place = {"item_id": given["id"], "output_index": index}
        events.append({"type": "response.output_item.added", "output_index": index, "item": given})
        events.extend({**event, **place} for event in inner)
        events.append({"type": "response.output_item.done", "output_index": index, "item": given})

    def texts(kind: str, name: str, count: int) -> list[dict[str, Any]]:
        return [{"type": kind, "delta": f"{name}{number}\0 "} for number in range(count)]

    parts = [{"type": "response.reasoning_summary_part.added", "summary_index": index} for index in (0, 1)]
    thought = texts("response.reasoning_summary_text.delta", "r", 6)
    sealed = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "sealed"}
    item(0, sealed, parts[0], *thought[:3], parts[1], *thought[3:])
    item(1, {"id": "msg_1", "type": "message", "role": "assistant"}, *texts("response.output_text.delta", "a", 70))
    item(2, {"id": "ws_1", "type": "web_search_call", "status": "completed"})
    item(3, {"id": "msg_2", "type": "message", "role": "assistant"}, *texts("response.output_text.delta", "b", 40))
    output = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    events.append({"type": "response.completed", "response": {"id": "resp_up1", "output": output}})
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


class CrashingProcess:
    """Records an answer event by event, dies, and goes on from what it recorded."""

    def __init__(self, shows_encrypted: bool = False) -> None:
        self.shows_encrypted = shows_encrypted
        self.log: list[Event] = [created_event()]
        self.finished: ModelEvent | None = None

    def receive(self, events: list[dict[str, Any]], until: int, resume: ResumePoint | None) -> None:
        builder = OutputBuilder(RESPONSE_ID, self.log)
        builder.close("incomplete")
        recorder = Recorder(
            builder, {}, set(), "function_call", lambda context: "", shows_encrypted=self.shows_encrypted
        )
        answer = BackgroundAnswer(STORED, UPSTREAM, resume)
        for event in events[answer.cursor + 1 : until]:
            for model_event in answer.understand(event):
                cleaned = clean_event(model_event)  # as every round does
                assert not isinstance(cleaned, ModelFinished)
                recorder.record(cleaned)
        if until >= len(events):
            self.finished = list(answer.end(None))[-1]
            builder.close("completed")
        self.log += builder.take()

    @property
    def point(self) -> ResumePoint | None:
        upstream = UpstreamLog()
        for event in self.log:
            upstream.read(event)
        return upstream.resume_point()

    def deltas(self, kind: str) -> str:
        return "".join(event["delta"] for event in self.log if event["type"] == kind)

    @property
    def sealed(self) -> int:
        kept: list[Any] = [event["state"] for event in self.log if event["type"] == ITEM_STATE]
        if self.shows_encrypted:
            kept = [event["item"] for event in self.log if event["type"] == "response.output_item.done"]
        return sum("encrypted_content" in entry for entry in kept)

    def count(self, item_type: str) -> int:
        added = [event["item"]["type"] for event in self.log if event["type"] == "response.output_item.added"]
        return added.count(item_type)


@pytest.mark.parametrize("shows_encrypted", [True, False])
def test_wherever_processes_die_nothing_is_lost_or_doubled(shows_encrypted: bool) -> None:
    events = long_answer()
    whole = CrashingProcess()
    whole.receive(events, len(events), None)
    positions = [event for event in whole.log if event["type"] == UPSTREAM_POSITION]
    assert len(positions) == 1 + len(events) // POSITION_EVENTS
    kinds = ("response.output_text.delta", "response.reasoning_summary_text.delta")
    for death in range(1, len(events)):
        process = CrashingProcess(shows_encrypted)
        process.receive(events, death, None)
        process.receive(events, min(death + 7, len(events) - 1), process.point)  # and dies again
        process.receive(events, len(events), process.point)
        assert isinstance(process.finished, ModelFinished)
        for kind in kinds:
            assert process.deltas(kind) == whole.deltas(kind), (death, kind)
        assert (process.count("web_search_call"), process.sealed) == (1, 1), death


def test_no_position_lies_in_what_is_dropped() -> None:
    """A log may have more behind its last position than this version reports in one go."""
    deltas = [str(number % 10) for number in range(4 * POSITION_EVENTS)]
    position = UpstreamPosition("", "resp_up1", 0)
    resume = ResumePoint(position, {TextDelta: 2 * POSITION_EVENTS})
    answer = BackgroundAnswer(STORED, UPSTREAM, resume)
    received: list[ModelEvent] = []
    for event in text_events(*deltas)[1:]:
        received += answer.understand(event)
    assert sum(isinstance(event, TextDelta) for event in received) == 2 * POSITION_EVENTS
    reported = [event.cursor for event in received if isinstance(event, UpstreamPosition)]
    assert reported[0] == 1 + 2 * POSITION_EVENTS  # the last event that is dropped


def test_an_answer_that_was_abandoned_is_not_picked_up() -> None:
    events = long_answer()
    process = CrashingProcess()
    process.receive(events, 20, None)
    assert process.point is not None
    builder = OutputBuilder(RESPONSE_ID, process.log)
    recorder = Recorder(builder, {}, set(), "function_call", lambda context: "")
    for event in (UpstreamAbandoned(), TextDelta("of another answer")):
        recorder.record(event)
    process.log += builder.take()
    assert process.point is None


def test_behind_a_whole_call_nothing_is_picked_up() -> None:
    """Its output is what the model goes on from."""
    process = CrashingProcess()
    process.receive(long_answer(), 20, None)
    builder = OutputBuilder(RESPONSE_ID, process.log)
    builder.close("completed")
    builder.call_started("c1", "look")
    process.log += builder.take()
    assert process.point is not None
    builder.call_finished("c1")
    process.log += builder.take()
    assert process.point is None
