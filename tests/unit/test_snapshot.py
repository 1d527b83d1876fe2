"""The response object is a fold over its events, wherever the log is cut."""

import tracemalloc
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from responses_app.eventlog.merging import merge
from responses_app.eventlog.segments import Numbering, Segment
from responses_app.protocol.builder import OutputBuilder
from responses_app.protocol.events import Event
from responses_app.protocol.items import content_text
from responses_app.protocol.reasoning_items import FORMS
from responses_app.protocol.response_object import json_body
from responses_app.protocol.snapshot import fold
from responses_app.protocol.sse import decode_frames, split_frames
from responses_app.protocol.status import Status
from tests.support.output_builders import RESPONSE_ID, created_event

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("text"), st.text(max_size=5)),
        st.tuples(st.just("reasoning"), st.text(max_size=5)),
        st.tuples(st.just("call"), st.text(max_size=5)),
        st.tuples(st.just("opaque"), st.sampled_from(["in_progress", "completed", ""])),
        st.tuples(st.just("internal"), st.just("")),
    ),
    max_size=12,
)


def play(steps: list[tuple[str, str]], builder: OutputBuilder) -> list[Event]:
    log: list[Event] = []
    for number, (kind, value) in enumerate(steps):
        call_id = f"call_{number}"
        if kind == "text":
            builder.text(value, [{"token": value}] * (number % 3))
        elif kind == "reasoning":
            builder.reasoning(value, FORMS[number % 2])
        elif kind == "call":
            builder.call_started(call_id, "tool")
            builder.call_arguments(call_id, value)
            builder.call_finished(call_id)
            builder.tool_output(call_id, value)
        elif kind == "opaque":
            builder.opaque({"type": "apply_patch_call", "call_id": call_id, "status": value})
        else:
            log.append({"type": "hermes.note"})
        log += builder.take()
    return log


def whole_log(steps: list[tuple[str, str]], status: Status) -> list[Event]:
    builder = OutputBuilder(RESPONSE_ID, [created_event()])
    log = [created_event(), *play(steps, builder)]
    builder.finish(status)
    return log + builder.take()


@settings(deadline=None)
@given(STEPS, st.sampled_from([Status.COMPLETED, Status.FAILED, Status.INCOMPLETE, Status.CANCELLED]))
def test_the_terminal_event_equals_the_fold_of_what_came_before(steps: list[tuple[str, str]], status: Status) -> None:
    log = whole_log(steps, status)
    final = log[-1]["response"]
    assert fold(log) == final
    assert fold(log[:-1])["output"] == final["output"]
    own = [item for item in final["output"] if item["type"] != "apply_patch_call"]  # whose status is the upstream's
    assert [item["status"] for item in own].count("in_progress") == 0
    assert all(not isinstance(i.get("output"), list) for i in json_body(final)["output"])


@settings(deadline=None)
@given(STEPS, st.data())
def test_a_log_cut_anywhere_can_be_taken_up_again(steps: list[tuple[str, str]], data: st.DataObject) -> None:
    builder = OutputBuilder(RESPONSE_ID, [created_event()])
    log = [created_event(), *play(steps, builder)]
    cut = data.draw(st.integers(1, len(log)))
    kept = log[:cut]
    second = OutputBuilder(RESPONSE_ID, kept)
    second.finish(Status.INCOMPLETE, incomplete={"reason": "server_interrupted"})
    whole = kept + second.take()
    assert fold(whole)["output"] == whole[-1]["response"]["output"]
    opened = [e["output_index"] for e in whole if e["type"] == "response.output_item.added"]
    closed = [e["output_index"] for e in whole if e["type"] == "response.output_item.done"]
    assert opened == list(range(len(opened)))
    assert sorted(closed) == opened


@settings(deadline=None)
@given(STEPS, st.data())
def test_segments_cut_and_merged_give_back_the_same_bytes(steps: list[tuple[str, str]], data: st.DataObject) -> None:
    log = whole_log(steps, Status.COMPLETED)
    numbering = Numbering(RESPONSE_ID, 1)
    segments: list[Segment] = []
    rest = log
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        segments.append(numbering.seal(rest[:size]))
        rest = rest[size:]
    whole = b"".join(segment.data for segment in segments)
    frames = split_frames(whole)
    assert len(frames) == len(log)
    [(merged, _)] = merge(segments)
    assert merged.data == whole
    assert merged.is_final
    sequence = 0
    for position in range(-1, len(log) - 1):
        after = merged.after(position)
        assert after.data == b"".join(frames[position + 1 :])
        assert after.first_sequence == sequence
        sequence += not log[position + 1]["type"].startswith("hermes.")
    numbers = [event.get("sequence_number") for event in decode_frames([whole])]
    assert [n for n in numbers if n is not None] == list(range(merged.next_sequence))
    public: list[Any] = merged.public_frames()
    assert len(public) == merged.next_sequence


def test_a_text_that_grows_costs_no_more_room_than_its_words() -> None:
    builder = OutputBuilder(RESPONSE_ID, [created_event()])
    builder.text("first ")
    tracemalloc.start()
    try:
        for number in range(50_000):
            builder.text(f"word{number % 10} ")
            builder.take()
        grown, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert grown < 2 * len("wordN ") * 50_000
    assert content_text(builder.output[0]["content"]).startswith("first word0 word1 ")
