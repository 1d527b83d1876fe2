"""Turns whose process dies in the middle of an answer: the text goes on exactly, and no model is asked needlessly."""

import json
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway_app.agent.answer_buffer import CONTINUE
from tests.support.background_stub import BackgroundStub
from tests.support.checker import check_after_fault, check_log
from tests.support.migrated_database import Database
from tests.support.model_stub import Answer, Finish, Gate, ModelStub, Text
from tests.support.restarts import has_output, start_and_kill
from tests.support.scripted_requests import respond, start_background
from tests.support.server import Server, eventually, text
from tests.support.stored_rows import stored_rows

pytestmark = [pytest.mark.any_database, pytest.mark.fault]

NEVER = Gate(threading.Event())
REFUSED = Answer(400, b'{"error": {"message": "Cannot have a trailing assistant message."}}')


def statuses(body: dict[str, Any]) -> list[tuple[str, str]]:
    return [(item["type"], item["status"]) for item in body["output"]]


# -- prefill ----------------------------------------------------------------------------
def test_a_killed_answer_is_continued_by_prefill_and_by_a_note_where_that_is_refused(
    make_server: Callable[..., Server], stub: ModelStub
) -> None:
    front = make_server(HERMES_PROVIDER="vllm", HERMES_BASE_URL=stub.url, HERMES_MODEL="m")
    stub.play(Text("one  "), NEVER)
    stub.play(Text(" two "), NEVER)
    stub.play(REFUSED)
    stub.play(Text("three"), Finish())
    response_id = start_and_kill(front, lambda: has_output(front, "one "))
    eventually(lambda: " two " in text(front.body(response_id)), what="the second part")
    front.kill()
    front.start()
    body = front.ended(response_id)
    assert (body["status"], text(body)) == ("completed", "one   two three")
    assert statuses(body) == [("message", "incomplete"), ("message", "incomplete"), ("message", "completed")]
    last = [asked.body["messages"][-1]["content"] for asked in stub.asked[1:]]
    assert last == ["one  ", "one   two ", CONTINUE]
    assert [asked.body.get("continue_final_message") for asked in stub.asked] == [None, True, True, None]
    assert stub.asked[3].body["messages"][-2]["content"] == "one   two "
    check_log(front, response_id)


# -- an upstream that runs by itself ----------------------------------------------------
@pytest.fixture
def make_front(database: Database, tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """A server whose upstream is asked in background mode."""
    made: list[Server] = []

    def make(base_url: str, api_key: str = "k-0123456789") -> Server:
        env = {"HERMES_PROVIDER": "custom", "HERMES_BASE_URL": base_url, "HERMES_API_KEY": api_key}
        env |= {"HERMES_MODEL": "hermes-agent", "HERMES_API_MODE": "codex_responses"}
        made.append(database.server(tmp_path / "front", Server, **env))
        (made[-1].home / "config.yaml").write_text(json.dumps({"model": {"upstream_resume": True}}))
        return made[-1].start()

    yield make
    try:
        for server in made:
            check_after_fault(server)
    finally:
        for server in made:
            server.kill()


STEPS = ({"say": "one two "}, {"gate": "rest"}, {"say": "three four"})


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_another_hermes_site_is_asked_once_although_the_server_in_front_of_it_dies(
    make_server: Callable[..., Server], make_front: Callable[..., Server], number: int
) -> None:
    back = make_server()
    front = make_front(f"{back.url}/v1", back.key)
    response_id = start_background(front, *STEPS)
    eventually(lambda: text(front.body(response_id)) == "one two ", what="the first words")
    front.kill(number)
    front.start()
    back.open_gate("rest")
    body = front.ended(response_id)
    assert (body["status"], text(body)) == ("completed", "one two three four")
    assert statuses(body) == [("message", "incomplete"), ("message", "completed")]
    assert [call["event"] for call in back.model_calls("one two ")] == ["started", "finished"]
    assert [row[0] for row in stored_rows(back, "response", "status")] == ["completed"]
    assert body["usage"]["output_tokens"] == 4
    check_log(front, response_id)


def test_a_cancelled_turn_is_cancelled_at_its_upstream_too(
    make_server: Callable[..., Server], make_front: Callable[..., Server]
) -> None:
    back = make_server()
    front = make_front(f"{back.url}/v1", back.key)
    response_id = start_background(front, *STEPS)
    eventually(lambda: text(front.body(response_id)) == "one two ", what="the first words")
    front.openai().responses.cancel(response_id)
    assert front.ended(response_id)["status"] == "cancelled"
    eventually(lambda: [row[0] for row in stored_rows(back, "response", "status")] == ["cancelled"])


def test_an_upstream_that_behaves_like_openai_is_picked_up(make_front: Callable[..., Server]) -> None:
    with BackgroundStub(gate_at=4) as upstream:
        front = make_front(upstream.url)
        response_id = start_background(front)
        eventually(lambda: text(front.body(response_id)) == "one two ", what="the first words")
        front.kill()
        front.start()
        body = front.ended(response_id)
        assert (body["status"], text(body)) == ("completed", "one two three four")
        assert (len(upstream.posts), upstream.picked_up, upstream.cancelled) == (1, [0], [])
        assert respond(front, store=False)["status"] == "completed"
        asked = [(body.get("background"), body["store"]) for body in upstream.posts]
        assert asked == [(True, True), (None, False)]
        check_log(front, response_id)
