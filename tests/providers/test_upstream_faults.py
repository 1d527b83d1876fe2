"""Every fault of a model's server, in both protocols: before the first word, in the text and in a call."""

import threading
from typing import Any

import pytest

from gateway_app.agent.answer_buffer import CONTINUE
from gateway_app.agent.events import CallFinished, CallStarted
from tests.support.model_stub import (
    Answer,
    Begun,
    Call,
    Calls,
    Cut,
    Dripped,
    Finish,
    Gate,
    Leave,
    ModelStub,
    Pings,
    Raw,
    Reset,
    Step,
    StreamStyle,
    Text,
    sse,
)
from tests.support.providers import Providers, RecordedRound, record_round

POSITIONS = ("before", "in text", "in a call")
ARGUMENTS = '{"path": "a.txt", "text": "Grüße 🎉"}'
# For faults that are a silence alone: on a busy machine any answer may take longer than that.
SHORT: dict[str, Any] = {"read_secs": 0.5, "stale_secs": 1.0}
SILENCES = ("silent", "only pings")
MEGABYTES = "x" * 10_000_000

# What was sent before the fault, and what the next request is answered with.
BEFORE: dict[str, tuple[Step, ...]] = {
    "before": (),
    "in text": (Text("Grüße, "),),
    "in a call": (Text("Well. "), Begun(Call("call_0", "write_file", ('{"path": "a.txt", "te',)))),
}
AFTER: dict[str, tuple[Step, ...]] = {
    "before": (Text("Grüße, "), Text("wörld 🎉"), Finish()),
    "in text": (Text("wörld 🎉"), Finish()),
    "in a call": (Calls((Call("call_0", "write_file", (ARGUMENTS[:9], ARGUMENTS[9:])),)), Finish("tool_calls")),
}
NEVER = threading.Event()
BREAKING: dict[str, tuple[Step, ...]] = {
    "closed": (Cut(),),
    "reset": (Reset(),),
    "ended without a reason": (),
    "silent": (Gate(NEVER),),
    "only pings": (Pings(),),
    "half an event": (Raw(b'data: {"choices": [{"del'), Cut()),
    "garbled JSON": (Raw(b'data: {"choices": [{"delta": \n\n'),),
    "not an object": (Raw(b"data: 5\n\n"),),
    "nonsense": (Raw(sse({"choices": 5, "type": "response.output_item.added", "item": 7})),),
    "overloaded": (Raw(sse({"error": {"type": "overloaded_error", "message": "Overloaded"}})),),
    "connection lost": (Raw(sse({"error": {"message": "Network connection lost."}})),),
}
ANSWERS: dict[str, Answer] = {
    f"{status}{' with Retry-After' if headers else ''}": Answer(status, b'{"error": {"message": "No."}}', headers)
    for status in (408, 409, 429, 500, 503)
    for headers in ({}, {"Retry-After": "0.01"})
}


@pytest.fixture(params=POSITIONS)
def position(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def check(recorded: RecordedRound, providers: Providers, position: str, last_request: int) -> None:
    """Nothing is lost, nothing sent twice, no partial call is run."""
    shown = providers.shown(last_request)
    if position == "before":
        assert (recorded.text, recorded.calls, recorded.cuts) == ("Grüße, wörld 🎉", [], 0)
        assert shown == providers.shown(0)
    elif position == "in text":
        assert (recorded.text, recorded.calls, recorded.cuts) == ("Grüße, wörld 🎉", [], 1)
        assert "Grüße, " in shown
        assert CONTINUE in shown
    else:
        assert (recorded.text, recorded.calls, recorded.cuts) == ("Well. ", [("write_file", ARGUMENTS)], 1)
        started = [event.call_id for event in recorded.events if isinstance(event, CallStarted)]
        assert len(set(started)) == 2
        assert CallFinished(started[0], is_cut=True) in recorded.events
        assert "`write_file` was cut off" in shown
        assert "a.txt" not in shown


@pytest.mark.parametrize("fault", BREAKING)
async def test_an_answer_that_breaks_is_made_whole(providers: Providers, mode: str, position: str, fault: str) -> None:
    providers.stub.play(*(BEFORE[position] or (StreamStyle(),)), *BREAKING[fault])
    providers.stub.play(*AFTER[position])
    limits = SHORT if fault in SILENCES else {}
    recorded = await record_round(providers.provider(mode, **limits))
    check(recorded, providers, position, last_request=1)
    connections = [asked.connection for asked in providers.stub.asked]
    assert len(connections) == len(set(connections)) == 2


@pytest.mark.parametrize("fault", ANSWERS)
async def test_a_refusal_for_the_moment_is_asked_again(
    providers: Providers, mode: str, position: str, fault: str
) -> None:
    if position != "before":
        providers.stub.play(*BEFORE[position], Cut())
    providers.stub.play(ANSWERS[fault])
    providers.stub.play(*AFTER[position])
    recorded = await record_round(providers.provider(mode))
    check(recorded, providers, position, last_request=-1)
    connections = [asked.connection for asked in providers.stub.asked]
    assert len(set(connections)) == len(connections)


async def test_where_a_server_is_gone_the_next_model_goes_on(providers: Providers, mode: str, position: str) -> None:
    providers.stub.play(*BEFORE[position], Leave())
    with ModelStub() as other:
        other.play(*AFTER[position])
        recorded = await record_round(providers.provider(mode), providers.provider(mode, base_url=other.url))
        providers.stub.asked += other.asked
    check(recorded, providers, position, last_request=1)


def spread(position: str, noise: Step) -> tuple[Step, ...]:
    """An answer with something odd in one place."""
    text, call = Text("Grüße, wörld 🎉"), Calls((Call("call_0", "write_file", (ARGUMENTS[:9], ARGUMENTS[9:])),))
    begun = Begun(Call("call_1", "patch", ("{", "}")))
    steps = {"before": (noise, text, call), "in text": (text, noise, call), "in a call": (text, call, begun, noise)}
    return StreamStyle(), *steps[position], Finish("tool_calls")


NOISE = {
    "a comment": Raw(b": hello\n\n"),
    "a vendor's event": Raw(sse({"type": "codex.rate_limits", "object": "vendor.thing", "plan": "free"})),
    "an empty delta": Raw(sse({"choices": [{"index": 0, "delta": {}, "finish_reason": None}], "type": "x"})),
    "other line ends": Raw(b": a\r\n\r\nevent: y\r\ndata: {}\r\n\r\n"),
    "a comment of 10 MB": Raw(f": {MEGABYTES}\n\n".encode()),
    "an event of 10 MB": Raw(sse({"type": "vendor", "filler": MEGABYTES})),
}


@pytest.mark.parametrize("noise", NOISE)
async def test_noise_changes_nothing(providers: Providers, mode: str, position: str, noise: str) -> None:
    providers.stub.play(*spread(position, NOISE[noise]))
    recorded = await record_round(providers.provider(mode))
    assert recorded.text == "Grüße, wörld 🎉"
    assert recorded.calls[:1] == [("write_file", ARGUMENTS)]
    assert (providers.requests, recorded.cuts, recorded.finish.reason) == (1, 0, "tool_calls")


def dripped(steps: tuple[Step, ...]) -> list[Step]:
    return [step if isinstance(step, Cut) else Dripped(step) for step in steps]


async def test_bytes_that_come_one_by_one_and_split_characters_are_put_together(
    providers: Providers, mode: str, position: str
) -> None:
    providers.stub.play(StreamStyle(), *dripped(BEFORE[position]), Cut())
    providers.stub.play(StreamStyle(), *dripped(AFTER[position]))
    check(await record_round(providers.provider(mode)), providers, position, last_request=1)


async def test_ids_that_rotate_are_matched(providers: Providers, position: str) -> None:
    providers.stub.play(StreamStyle(rotates_ids=True), *BEFORE[position], Cut())
    providers.stub.play(StreamStyle(rotates_ids=True), *AFTER[position])
    check(await record_round(providers.provider("codex_responses")), providers, position, last_request=1)


async def test_text_and_arguments_of_10_megabytes_in_one_line_arrive(providers: Providers, mode: str) -> None:
    arguments = f'{{"text": "{MEGABYTES}"}}'
    providers.stub.play(Text(MEGABYTES), Calls((Call("c", "write_file", (arguments,)),)), Finish("tool_calls"))
    recorded = await record_round(providers.provider(mode))
    assert (recorded.text == MEGABYTES, recorded.calls == [("write_file", arguments)]) == (True, True)
