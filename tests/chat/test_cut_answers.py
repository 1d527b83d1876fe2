"""An answer that was cut for good looks like a success in no API, and a long wait is passed on."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import openai
import pytest

from tests.support.chat_client import post, scripted, stream_completion, user
from tests.support.hermes_client import all_run_events, ended_run, event_data, start_run
from tests.support.hermes_client import post as post_json
from tests.support.migrated_database import Database
from tests.support.model_stub import Answer, Call, Calls, Cut, Finish, ModelStub, Text
from tests.support.scripted_requests import respond
from tests.support.server import Server, frames, text
from tests.support.session_client import create_session

pytestmark = pytest.mark.any_database

HI: Any = [user("hi")]
SUM = Calls((Call("c1", "calculate", ('{"expression": "6*7"}',)),))
AN_HOUR = Answer(429, b'{"error": {"message": "Slow down."}}', {"Retry-After": "3600"})
AT_ONCE_SECS = 20  # on a busy machine; without an end it would be a minute


@pytest.fixture(scope="module")
def stub() -> Iterator[ModelStub]:
    with ModelStub() as running:
        yield running


@pytest.fixture(scope="module")
def front(database: Database, stub: ModelStub, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    env = {"HERMES_PROVIDER": "custom", "HERMES_BASE_URL": stub.url, "HERMES_MODEL": "m"}
    server = database.server(tmp_path_factory.mktemp("cut") / "h", Server, **env).start()
    yield server
    server.kill()


def play_cuts(stub: ModelStub) -> None:
    for _ in range(5):
        stub.play(Text("piece "), Cut())


# -- cut answers ------------------------------------------------------------------------
def test_a_stream_that_was_cut_ends_with_an_error_and_done(front: Server, stub: ModelStub) -> None:
    play_cuts(stub)
    completion = stream_completion(front, HI, stream_options={"include_usage": True})
    assert completion.joined("content") == "piece " * 5
    assert completion.error is not None
    assert (completion.error["code"], completion.error["type"]) == ("agent_incomplete", "server_error")
    assert (completion.reasons, completion.is_done) == ([], True)
    play_cuts(stub)
    with pytest.raises(openai.APIError, match="was cut"):
        for _ in front.openai().chat.completions.create(model="hermes-agent", messages=HI, stream=True):
            pass


def test_a_completion_that_was_cut_may_be_tried_again(front: Server, stub: ModelStub) -> None:
    play_cuts(stub)
    answer = post(front, HI)
    assert (answer.status_code, answer.json()["error"]["type"]) == (502, "server_error")
    assert "x-should-retry" not in answer.headers


def test_it_may_not_once_a_tool_has_run(front: Server, stub: ModelStub) -> None:
    stub.play(SUM, Finish("tool_calls"))
    play_cuts(stub)
    answer = post(front, HI)
    assert (answer.status_code, answer.headers["x-should-retry"]) == (502, "false")


def test_nothing_of_an_unstored_completion_is_offered(front: Server, stub: ModelStub) -> None:
    play_cuts(stub)
    assert "GET" not in post(front, HI, store=False).json()["error"]["message"]


def test_a_response_that_was_cut_is_incomplete(front: Server, stub: ModelStub) -> None:
    play_cuts(stub)
    body = respond(front)
    assert (body["status"], body["incomplete_details"]["reason"]) == ("incomplete", "upstream_cut")


def test_a_run_that_was_cut_has_failed(front: Server, stub: ModelStub) -> None:
    play_cuts(stub)
    run_id = start_run(front, {"input": "hi"})
    run = ended_run(front, run_id)
    assert (run["status"], run["output"]) == ("failed", "piece " * 5)
    assert event_data(all_run_events(front, run_id))[-1]["event"] == "run.failed"


def test_a_turn_of_a_session_that_was_cut_has_failed(front: Server, stub: ModelStub) -> None:
    path = f"/api/sessions/{create_session(front)['id']}/chat"
    play_cuts(stub)
    answer = post_json(front, path, {"message": "hi"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "upstream_cut")
    play_cuts(stub)
    with front.http() as client, client.stream("POST", f"{path}/stream", json={"message": "hi"}) as streamed:
        names = [frame.split(b"event: ")[1].split(b"\n")[0] for frame in frames(streamed)]
    assert names[-2:] == [b"error", b"done"]
    assert b"run.completed" not in names


def test_a_limit_is_no_cut(front: Server, stub: ModelStub) -> None:
    for reason in ("length", "content_filter"):
        stub.play(Text("so "), Finish(reason))
        assert post(front, HI).json()["choices"][0]["finish_reason"] == reason
        stub.play(Text("so "), Finish(reason))
        assert stream_completion(front, HI).reasons == [reason]


def test_a_completion_that_took_too_long_is_an_error_too(make_server: Callable[..., Server]) -> None:
    server = make_server(HERMES_TURN_TIMEOUT="1")
    asked = scripted({"say": "kept "}, {"gate": "never"})
    completion = stream_completion(server, asked)
    assert (completion.joined("content"), completion.reasons) == ("kept ", [])
    assert completion.error is not None
    assert "time_limit" in completion.error["message"]
    answer = post(server, asked)
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "agent_incomplete")


# -- Retry-After ------------------------------------------------------------------------
def test_an_hour_to_wait_is_passed_on_at_once(front: Server, stub: ModelStub) -> None:
    start = time.monotonic()
    stub.play(AN_HOUR)
    answer = post(front, HI)
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "3600")
    assert answer.headers["x-should-retry"] == "false"
    stub.play(AN_HOUR)
    completion = stream_completion(front, HI)
    assert completion.error is not None
    assert completion.error["message"] == "The model's server answered 429: Slow down. Retry after 3600 s."
    stub.play(AN_HOUR)
    body = respond(front)
    assert (body["status"], body["error"]["code"]) == ("failed", "rate_limit_exceeded")
    assert body["error"]["message"].endswith("Retry after 3600 s.")
    stub.play(AN_HOUR)
    path = f"/api/sessions/{create_session(front)['id']}/chat"
    assert post_json(front, path, {"message": "hi"}).headers["retry-after"] == "3600"
    assert time.monotonic() - start < AT_ONCE_SECS


def test_a_model_that_loads_is_waited_for(front: Server, stub: ModelStub) -> None:
    """Three retries in a row are one more than the setting allows."""
    for _ in range(3):
        stub.play(Answer(503, b'{"error": {"message": "Loading model", "type": "unavailable_error"}}'))
    body = respond(front)
    assert (body["status"], text(body)) == ("completed", "Hello wörld 🎉")
