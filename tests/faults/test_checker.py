"""The checker itself: each of its properties can fail."""

from typing import Any

import httpx
import pytest

from responses_app.protocol.builder import OutputBuilder
from responses_app.protocol.events import COMPLETED, CREATED, Event
from responses_app.protocol.response_object import initial_body
from responses_app.protocol.snapshot import fold
from responses_app.protocol.sse import encode_frame
from responses_app.protocol.status import Status
from tests.support.checker import (
    DONE,
    History,
    check_effects,
    check_keys,
    check_log,
    check_seen,
    check_upstream_runs,
)
from tests.support.server import Server

RESPONSE = "resp_" + "0" * 32


def answer_events() -> list[Event]:
    body = initial_body(RESPONSE, model="m", created_at=1, status=Status.IN_PROGRESS, echo={})
    opening: list[Event] = [{"type": CREATED, "response": body}]
    builder = OutputBuilder(RESPONSE, opening)
    builder.text("one ")
    builder.text("two")
    builder.finish(Status.COMPLETED, usage=None, error=None, incomplete=None)
    return opening + builder.take()


class Stored:
    """A log as an API would return it."""

    def __init__(self, log: list[Event], numbers: list[int] | None = None) -> None:
        numbers = numbers or list(range(len(log)))
        self.frames = [encode_frame(event, number) for event, number in zip(log, numbers, strict=True)]
        self.snapshot = fold(log)

    def replay(self, response_id: str) -> list[bytes]:
        return [*self.frames, DONE]

    def body(self, response_id: str) -> dict[str, Any]:
        return dict(self.snapshot)


def test_a_good_log_passes() -> None:
    check_log(Stored(answer_events()), RESPONSE)


def test_a_gap_is_found() -> None:
    log = answer_events()
    with pytest.raises(AssertionError):
        check_log(Stored(log, [*range(3), *range(4, len(log) + 1)]), RESPONSE)


def test_a_second_end_and_a_missing_one_are_found() -> None:
    log = answer_events()
    assert log[-1]["type"] == COMPLETED
    for bad in ([*log, log[-1]], log[:-1]):
        with pytest.raises(AssertionError):
            check_log(Stored(bad), RESPONSE)


def test_a_lost_delta_is_found() -> None:
    log = answer_events()
    deltas = [event for event in log if event["type"] == "response.output_text.delta"]
    log.remove(deltas[0])
    with pytest.raises(AssertionError):
        check_log(Stored(log), RESPONSE)


def test_what_was_seen_and_is_not_stored_is_found() -> None:
    stored, history = Stored(answer_events()), History()
    client = history.client()
    for frame in stored.frames[:4]:
        client.note(frame)
    check_seen(stored, history)
    client.note(stored.frames[3])
    with pytest.raises(AssertionError):
        check_seen(stored, history)


def test_a_second_run_is_found() -> None:
    check_effects(["one", "two", "safe", "safe"])
    with pytest.raises(AssertionError):
        check_effects(["one", "two", "one"])
    history = History()
    history.note("resp_1", key="k")
    history.note("resp_1", key="k")
    check_keys(history)
    history.note("resp_2", key="k")
    with pytest.raises(AssertionError):
        check_keys(history)


class StubApi(Server):
    """What an API and a model would return about questions that were stored and that reached the model."""

    def __init__(self, stored: list[str], asked: list[tuple[str, int]]) -> None:
        self.stored, self.asked = stored, asked

    def http(self, key: str | None = None) -> httpx.Client:
        return httpx.Client(base_url="http://test", transport=httpx.MockTransport(self._answer))

    def _answer(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/v1/responses":
            ids = [{"id": str(number), "status": "completed"} for number in range(len(self.stored))]
            return httpx.Response(200, json={"data": ids, "has_more": False})
        question = self.stored[int(request.url.path.split("/")[3])]
        return httpx.Response(200, json={"data": [{"content": [{"text": question}]}]})

    def model_calls(self, text: str) -> list[dict[str, Any]]:
        return [{"event": "started", "texts": ["before", question], "pid": pid} for question, pid in self.asked]


def test_a_second_run_upstream_is_found() -> None:
    history = History()
    history.client("k").asked = "q"
    check_upstream_runs(StubApi(["q", "other", "other"], [("q", 1), ("q", 2), ("other", 1), ("other", 1)]), history)
    for bad in (StubApi(["q", "q"], [("q", 1)]), StubApi(["q"], [("q", 1), ("q", 1)])):
        with pytest.raises(AssertionError):
            check_upstream_runs(bad, history)


def test_a_refusal_is_not_passed_over() -> None:
    history = History()
    history.client().refusal = "503 later"
    check_seen(Stored(answer_events()), history)
    history.client().refusal = "500 never"
    with pytest.raises(AssertionError):
        check_seen(Stored(answer_events()), history)
