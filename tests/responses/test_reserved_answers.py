"""The operator's own limit of an answer: room is kept for it, and it never fails a short request."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.migrated_database import Database
from tests.support.model_stub import ModelStub
from tests.support.server import Server
from tests.support.small_windows import small_window_server

pytestmark = pytest.mark.any_database

WINDOW, LIMIT = 8192, 5000
WORDS = "plain words of a talk " * 60  # about 300 tokens
TALK = [{"role": "user", "content": WORDS}, {"role": "assistant", "content": "Yes."}] * 12


@pytest.fixture(scope="module")
def model() -> Iterator[ModelStub]:
    with ModelStub() as running:
        yield running


@pytest.fixture(scope="module")
def reserving(database: Database, tmp_path_factory: pytest.TempPathFactory, model: ModelStub) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("reserving") / "home"
    config = f"model: {{max_tokens: {LIMIT}}}\n"
    with small_window_server(database, home, model, WINDOW, config) as running:
        yield running


def post(server: Server, **body: Any) -> tuple[dict[str, Any], str]:
    with server.http() as client:
        answer = client.post("/v1/responses", json={"tools": [], **body})
    assert answer.json()["status"] == "completed", answer.text
    return answer.json(), answer.headers.get("X-Hermes-Ignored", "")


def counted(server: Server, items: list[dict[str, Any]]) -> int:
    with server.http() as client:
        answer = client.post("/v1/responses/input_tokens", json={"input": items, "tools": []})
    tokens: int = answer.json()["input_tokens"]
    return tokens


def test_truncation_leaves_room_for_it_and_reports_what_is_left_out(reserving: Server, model: ModelStub) -> None:
    question = [*TALK, {"role": "user", "content": "And now?"}]
    assert WINDOW - LIMIT < counted(reserving, question) < WINDOW * 3 // 4
    _, ignored = post(reserving, input=question, truncation="auto")
    assert ignored == "oldest turns (truncation)"
    sent = model.asked[-1].body
    assert counted(reserving, sent["messages"]) + sent["max_tokens"] <= WINDOW
    assert LIMIT - 200 < sent["max_tokens"] <= LIMIT  # the estimate of the request has a margin


def test_a_conversation_is_compacted_before_it_takes_the_room_of_the_answer(reserving: Server) -> None:
    body, _ = post(reserving, input=[*TALK, {"role": "user", "content": "And now?"}])
    assert body["output"][0]["type"] == "compaction"


def test_it_is_lowered_where_a_question_needs_the_room(reserving: Server, model: ModelStub) -> None:
    question = [{"role": "user", "content": WORDS * 14}]
    tokens = counted(reserving, question)
    assert WINDOW - LIMIT < tokens < WINDOW
    post(reserving, input=question)
    assert WINDOW - 2 * tokens < model.asked[-1].body["max_tokens"] <= WINDOW - tokens
    post(reserving, input=question, max_output_tokens=LIMIT)
    assert model.asked[-1].body["max_tokens"] == LIMIT  # the client's own is as it was sent
