"""Compaction with a real upstream: in both protocols, over faults, and over a kill -9."""

import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support.checker import check_log, traces
from tests.support.long_conversations import COMPACT, LONG, MANAGED, TALK, create, in_background, kinds, post, sent
from tests.support.migrated_database import Database
from tests.support.model_stub import Answer, Call, Calls, Cut, Finish, Gate, ModelStub, Text
from tests.support.server import Server, created_id, events, eventually, frames, text

pytestmark = pytest.mark.any_database

CALLED = ("function_call", "function_call_output")
TOOLS = [{"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}}]


@pytest.fixture(scope="module")
def model() -> Iterator[ModelStub]:
    with ModelStub() as running:
        yield running


@pytest.fixture(scope="module", params=["chat_completions", "codex_responses"])
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def running(
    database: Database, tmp_path_factory: pytest.TempPathFactory, model: ModelStub, mode: str
) -> Iterator[Server]:
    upstream = {"HERMES_PROVIDER": "custom", "HERMES_BASE_URL": model.url, "HERMES_MODEL": "m"}
    settings = {"HERMES_API_MODE": mode, "HERMES_STREAM_RETRIES": "1", "HERMES_LEASE_SECS": "2"}
    server = database.server(tmp_path_factory.mktemp(mode) / "h", Server, **upstream, **settings).start()
    yield server
    server.kill()


@pytest.fixture
def stub(model: ModelStub) -> ModelStub:
    model.asked.clear()
    return model


@pytest.fixture
def front(running: Server) -> Server:
    """One for all: a test that kills it starts it again."""
    return running if running.process is not None else running.start()


def test_a_summary_is_an_ordinary_question(front: Server, stub: ModelStub) -> None:
    stub.play(Text("the "), Text("gist"), Finish())
    made = post(front, COMPACT, input=TALK, instructions="Mind the dates.").json()
    asked = stub.asked[-1].body
    assert "tools" not in asked
    assert "Mind the dates." in str(asked)
    assert made["usage"]["output_tokens"] == 7
    stub.play(Text("yes"), Finish())
    create(front, input=[*made["output"], {"role": "user", "content": "and now"}], store=False)
    shown = sent(stub)
    assert shown.index("first words") < shown.index("last words") < shown.index("the gist") < shown.index("and now")
    assert "compacted" not in shown
    assert "first answer" not in shown


def test_what_broke_is_asked_again_and_a_cut_summary_is_continued(front: Server, stub: ModelStub) -> None:
    stub.play(Answer(503, b"{}"))
    stub.play(Text("one "), Cut())
    stub.play(Text("two"), Finish())
    made = post(front, COMPACT, input=TALK).json()
    create(front, input=[*made["output"], {"role": "user", "content": "x"}])
    assert "one two" in sent(stub)


@pytest.mark.parametrize(
    ("steps", "status", "code"),
    [
        ((Answer(400, b'{"error": {"message": "too long", "code": "context_length_exceeded"}}'),), 400, None),
        ((Answer(401, b"{}"),), 502, "upstream_auth_failed"),
        ((Finish(),), 500, "server_error"),
    ],
)
def test_no_summary_is_an_http_error(
    front: Server, stub: ModelStub, steps: tuple[Any, ...], status: int, code: str | None
) -> None:
    stub.play(*steps)
    answer = post(front, COMPACT, input=TALK)
    assert answer.status_code == status, answer.text
    assert code is None or answer.json()["error"]["code"] == code


def test_a_summary_that_reaches_its_limit_is_used(front: Server, stub: ModelStub) -> None:
    stub.play(Text("half"), Finish("length"))
    made = post(front, COMPACT, input=TALK).json()
    create(front, input=[*made["output"], {"role": "user", "content": "x"}])
    assert "half" in sent(stub)


def test_a_turn_goes_on_without_its_summary_while_it_fits(front: Server, stub: ModelStub) -> None:
    stub.play(Text("ok"), Finish())
    first = create(front, input=LONG)
    stub.play(Answer(400, b'{"error": {"message": "no"}}'))
    stub.play(Text("without it"), Finish())
    body = create(front, input="x", previous_response_id=first["id"], **MANAGED)
    assert (body["status"], kinds(body)[-1]) == ("completed", "message")
    assert LONG.strip() in sent(stub)
    check_log(front, body["id"])
    stub.play(Text("fine"), Finish())  # what was begun and not finished stands for nothing
    again = create(front, input="y", previous_response_id=body["id"])
    assert again["status"] == "completed"
    assert LONG.strip() in sent(stub)
    stub.play(Text("fine"), Finish())
    assert create(front, input=[*body["output"], {"role": "user", "content": "z"}])["status"] == "completed"


def test_calls_and_results_are_summed_up_with_the_rest(front: Server, stub: ModelStub) -> None:
    stub.play(Calls((Call("call_1", "look", ("{}",)),)), Finish("tool_calls"))
    first = create(front, input="please look", tools=TOOLS)
    result = {"type": "function_call_output", "call_id": "call_1", "output": f"seen {LONG}"}
    stub.play(Text("looked: a lot of words"), Finish())
    stub.play(Text("done"), Finish())
    second = create(front, input=[result], previous_response_id=first["id"], tools=TOOLS, **MANAGED)
    assert kinds(second) == ["compaction", "message"]
    shown = sent(stub)
    assert shown.index("please look") < shown.index("looked: a lot of words")
    assert "call_1" not in shown
    assert '"called":"look"' in sent(stub, -2).replace("\\", "")
    check_log(front, second["id"])


def test_a_call_id_that_comes_again_behind_a_summary_is_another_call(front: Server, stub: ModelStub) -> None:
    for trace, answer in ((f"first {LONG}", "Gist."), ("second", "Done.")):
        called = Call("call_1", "effect", (json.dumps({"text": trace}),))
        stub.play(Calls((called,)), Finish("tool_calls"))
        stub.play(Text(answer), Finish())
    body = create(front, input="work", **MANAGED)
    assert kinds(body) == [*CALLED, "compaction", *CALLED, "message"]
    assert [trace.split()[0] for trace in traces(front)] == ["first", "second"]
    assert len({item["call_id"] for item in body["output"] if "call_id" in item}) == 2
    check_log(front, body["id"])


def test_a_kill_in_the_middle_of_a_turns_summary_is_made_good(front: Server, stub: ModelStub) -> None:
    stub.play(Text("ok"), Finish())
    first = create(front, input=f"origin {LONG}")
    stub.play(Text("never whole "), Gate(threading.Event()))
    asked = {"input": "and then", "previous_response_id": first["id"], "stream": True, **MANAGED}
    with front.http() as client, client.stream("POST", "/v1/responses", json=asked) as answer:
        received = frames(answer)
        response_id = created_id(next(received))
        assert any(b"response.compaction.compacting" in frame for frame in received)
        eventually(lambda: len(stub.asked) == 2, what="the question for a summary")
        front.kill()
    stub.play(Text("the whole gist"), Finish())
    stub.play(Text("answered"), Finish())
    front.start()
    body = front.ended(response_id, 60)
    assert body["status"] == "completed"
    assert [(item["type"], item["status"]) for item in body["output"]] == [
        ("compaction", "incomplete"),
        ("compaction", "completed"),
        ("message", "completed"),
    ]
    assert "the whole gist" in sent(stub)
    assert "never whole" not in sent(stub)
    check_log(front, response_id)
    stub.play(Text("resent"), Finish())
    create(front, input=[*body["output"], {"role": "user", "content": "resend"}], store=False)
    assert "the whole gist" in sent(stub)


def test_a_kill_behind_a_summary_asks_for_no_other(front: Server, stub: ModelStub) -> None:
    stub.play(Text("ok"), Finish())
    first = create(front, input=f"origin {LONG}")
    stub.play(Text("the whole gist"), Finish())
    stub.play(Text("half an "), Gate(threading.Event()))
    asked = {"input": "and then", "previous_response_id": first["id"], "stream": True, **MANAGED}
    with front.http() as client, client.stream("POST", "/v1/responses", json=asked) as answer:
        received = frames(answer)
        response_id = created_id(next(received))
        assert any(b"half an " in frame for frame in received)
        front.kill()
    stub.play(Text("answer"), Finish())
    front.start()
    body = front.ended(response_id, 60)
    assert kinds(body) == ["compaction", "message", "message"]
    assert text(body) == "half an answer"
    assert len(stub.asked) == 4
    assert "the whole gist" in sent(stub)
    assert "and then" in sent(stub)
    assert body["usage"]["output_tokens"] == 14 + 2  # one summary, the end of the answer, and what the kill cut off
    check_log(front, response_id)


def test_a_kill_in_a_compaction_is_made_good_for_who_asks_again(front: Server, stub: ModelStub) -> None:
    stub.play(Text("never whole "), Gate(threading.Event()))
    headers = {"Idempotency-Key": "once"}
    asked = {"model": "hermes-agent", "input": TALK}

    def ask() -> httpx.Response:
        with front.http() as client:
            return client.post(COMPACT, json=asked, headers=headers, timeout=60)

    def ask_and_be_cut() -> None:
        with pytest.raises(httpx.TransportError):
            ask()

    waiting = in_background(ask_and_be_cut)
    eventually(lambda: len(stub.asked) == 1, what="the question for a summary")
    front.kill()
    waiting.join(30)
    stub.play(Text("the whole gist"), Finish())
    front.start()
    answer = ask()
    assert answer.status_code == 200, answer.text
    assert answer.headers["idempotency-replayed"] == "true"
    output = answer.json()["output"]
    assert [item["type"] for item in output] == ["message", "message", "compaction"]
    assert [item["content"][0]["text"] for item in output[:2]] == ["first words", "last words"]
    stub.play(Text("yes"), Finish())
    create(front, input=[*output, {"role": "user", "content": "x"}])
    assert "the whole gist" in sent(stub)


def test_a_cancelled_turn_stops_its_summary(front: Server, stub: ModelStub) -> None:
    stub.play(Text("ok"), Finish())
    first = create(front, input=LONG)
    stub.play(Text("slow "), Gate(threading.Event()))
    asked = {"input": "x", "previous_response_id": first["id"], "background": True, **MANAGED}
    response_id = create(front, **asked)["id"]
    eventually(lambda: len(stub.asked) == 2, what="the question for a summary")
    with front.http() as client:
        assert client.post(f"/v1/responses/{response_id}/cancel").json()["status"] == "cancelled"
    assert stub.asked[1].hung_up.wait(20)
    check_log(front, response_id)


def test_an_item_of_the_upstream_passes_where_there_is_one(front: Server, stub: ModelStub, mode: str) -> None:
    hosted = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAAA-of-the-upstream"}
    answer = post(front, input=[hosted, {"role": "user", "content": "x"}])
    if mode == "codex_responses":
        assert answer.status_code == 200
        assert stub.asked[-1].body["input"][0] == {"type": "compaction", "encrypted_content": "gAAAAA-of-the-upstream"}
        assert "x-hermes-ignored" not in answer.headers
    else:
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, "input[0].encrypted_content")


def test_an_item_of_the_upstream_outlives_our_summaries(front: Server, stub: ModelStub, mode: str) -> None:
    if mode != "codex_responses":
        pytest.skip("only this protocol has such items")
    hosted = {"type": "compaction", "encrypted_content": "gAAAAA-of-the-upstream"}
    rule = {"role": "developer", "content": "Speak plainly."}
    talk = [hosted, rule, {"role": "user", "content": LONG}, {"role": "assistant", "content": "ok"}]
    stub.play(Text("gist"), Finish())
    stub.play(Text("yes"), Finish())
    create(front, input=[*talk, {"role": "user", "content": "now"}], **MANAGED)
    shown = stub.asked[-1].body["input"]
    assert shown[0] == hosted
    assert [item.get("role") for item in shown[1:]] == ["user"]  # the summary, and the question behind it
    assert stub.asked[-1].body["instructions"] == "Speak plainly."
    assert "context_management" not in stub.asked[-1].body
    stub.play(Text("gist"), Finish())
    output = post(front, COMPACT, input=talk).json()["output"]
    create(front, input=[*output, {"role": "user", "content": "again"}])
    assert hosted in stub.asked[-1].body["input"]


def test_limits_of_the_turn_are_those_of_its_answer(front: Server, stub: ModelStub) -> None:
    stub.play(Text("ok"), Finish())
    first = create(front, input=LONG)
    stub.play(Text("gist"), Finish())
    stub.play(Text('{"a": 1}'), Finish())
    limits: dict[str, Any] = {"max_output_tokens": 7, "text": {"format": {"type": "json_object"}}, "user": "me"}
    body = create(front, input="x", previous_response_id=first["id"], **limits, **MANAGED)
    assert body["status"] == "completed"
    asked = stub.asked[1].body
    assert not {"max_tokens", "max_output_tokens", "response_format", "text"} & asked.keys()
    assert asked["user"] == "me"
    assert stub.asked[2].body.get("max_tokens", stub.asked[2].body.get("max_output_tokens")) == 7
    assert events(front.replay(body["id"]))
