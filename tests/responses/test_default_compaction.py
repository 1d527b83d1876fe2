"""Without being asked, every API keeps a conversation inside the window that the model's server reports."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.checker import check_log
from tests.support.long_conversations import SUMMARY, kinds, sent
from tests.support.model_stub import Answer, Finish, ModelStub, Raw, Text
from tests.support.server import Server
from tests.support.stored_rows import stored_rows

pytestmark = pytest.mark.any_database

LONG = "word " * 1700  # about 1,700 tokens
WINDOW = 4000
REPORTED = {"data": [{"id": "m", "object": "model", "max_model_len": WINDOW}]}
REFUSAL = b'{"error": {"message": "This model\'s maximum context length is 4000 tokens.", "code": 400}}'
SUMMED_UP = "what was before"


@pytest.fixture
def server(make_server: Callable[..., Server], stub: ModelStub) -> Server:
    """Its model's server reports a window."""
    stub.reports["/v1/models"] = REPORTED
    return serve(make_server, stub)


def serve(make_server: Callable[..., Server], stub: ModelStub, **env: str) -> Server:
    upstream = {"HERMES_BASE_URL": stub.url, "HERMES_MODEL": "m", "HERMES_STREAM_RETRIES": "0"}
    return make_server(HERMES_PROVIDER="custom", **upstream, **env)


def post(server: Server, path: str, body: dict[str, Any]) -> dict[str, Any]:
    with server.http() as client:
        got = client.post(path, json=body)
    assert got.status_code in (200, 201, 202), got.text
    found: dict[str, Any] = got.json()
    return found


def play(stub: ModelStub, *texts: str) -> None:
    for words in texts:
        stub.play(Text(words), Finish())


def talk(last: str) -> list[dict[str, str]]:
    """Longer than the share of the window at which it is compacted, and shorter than the window."""
    first = {"role": "user", "content": f"first {LONG}"}
    return [first, {"role": "assistant", "content": f"one {LONG}"}, {"role": "user", "content": last}]


def test_a_response_is_compacted_at_its_share_of_the_reported_window(server: Server, stub: ModelStub) -> None:
    play(stub, f"one {LONG}", SUMMED_UP, "two")
    first = post(server, "/v1/responses", {"input": f"first {LONG}", "tools": []})
    again = {"input": "second", "previous_response_id": first["id"], "tools": []}
    second = post(server, "/v1/responses", again)
    assert kinds(second) == ["compaction", "message"]
    assert SUMMARY in sent(stub)
    assert "first word" not in sent(stub)
    check_log(server, second["id"])


def test_a_chat_is_compacted_once(server: Server, stub: ModelStub) -> None:
    play(stub, SUMMED_UP, SUMMED_UP, "two", "three")  # in two pieces
    messages: list[dict[str, Any]] = talk("second")
    made = post(server, "/v1/chat/completions", {"messages": messages, "tools": []})
    assert made["choices"][0]["message"]["content"] == "two"
    messages += [{"role": "assistant", "content": "two"}, {"role": "user", "content": "third"}]
    made = post(server, "/v1/chat/completions", {"messages": messages, "tools": []})
    assert made["choices"][0]["message"]["content"] == "three"
    assert len(stub.asked) == 4  # the summary of the first request is used again
    assert SUMMARY in sent(stub)


def test_sessions_and_runs_are_compacted(server: Server, stub: ModelStub) -> None:
    session = post(server, "/api/sessions", {})["session"]["id"]
    play(stub, f"one {LONG}", SUMMED_UP, "two")
    with server.http() as client:
        for message in (f"first {LONG}", "second"):
            got = client.post(f"/api/sessions/{session}/chat", json={"message": message, "tools": []})
            assert got.status_code == 200, got.text
    assert SUMMARY in sent(stub)
    play(stub, SUMMED_UP, "three")
    history = talk("")[:2]
    run = post(server, "/v1/runs", {"input": "third", "conversation_history": history, "tools": []})
    body = server.ended(run["response_id"])
    assert kinds(body) == ["compaction", "message"]


def test_a_share_of_zero_turns_it_off(make_server: Callable[..., Server], stub: ModelStub) -> None:
    stub.reports["/v1/models"] = REPORTED
    server = serve(make_server, stub, HERMES_COMPACT_SHARE="0")
    body = post(server, "/v1/responses", {"input": talk("second"), "tools": []})
    assert (kinds(body), len(stub.asked)) == (["message"], 1)


@pytest.mark.parametrize(
    "refusal",
    [
        (Answer(400, REFUSAL),),
        (Raw(b'data: {"error": {"message": "maximum context length is 4000 tokens"}}\n\n'),),
        (Raw(b"data: [DONE]\n\n"),),
    ],
    ids=["status", "error in the stream", "empty stream"],
)
def test_a_refusal_for_length_compacts_and_asks_again(
    make_server: Callable[..., Server], stub: ModelStub, refusal: Any
) -> None:
    server = serve(make_server, stub)
    stub.play(*refusal)
    play(stub, SUMMED_UP, "two")
    body = post(server, "/v1/responses", {"input": talk("second"), "tools": []})
    assert (body["status"], kinds(body)) == ("completed", ["compaction", "message"])
    check_log(server, body["id"])


def test_ollama_that_drops_the_oldest_messages_is_reported(make_server: Callable[..., Server], stub: ModelStub) -> None:
    upstream = {"HERMES_BASE_URL": stub.url, "HERMES_MODEL": "m"}
    server = make_server(HERMES_PROVIDER="ollama", **upstream)
    body = post(server, "/v1/responses", {"input": talk("second"), "tools": []})
    [(deviations,)] = stored_rows(server, "response", "protocol_deviations", id=body["id"])
    assert "prompt cut by the upstream" in str(deviations)


def test_operators_see_the_window_and_its_source(server: Server, stub: ModelStub) -> None:
    post(server, "/v1/responses", {"input": "hello"})
    with server.http() as client:
        check = client.get("/health/detailed").json()["readiness"]["checks"]["model"]
    assert check["context_window"] == {"tokens": WINDOW, "source": "model server"}
    assert f"the context window of m: {WINDOW} tokens (model server)" in server.manage("doctor")
