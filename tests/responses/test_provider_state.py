"""The state of a provider over turns, forks, restarts and erasure: it goes back, and no client sees it."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from responses_app.services.archive.checking import check_response
from tests.support.checker import check_log
from tests.support.migrated_database import Database
from tests.support.model_stub import Call, Calls, Cut, Finish, ModelStub, StreamStyle, Text, Thought
from tests.support.people import create_key
from tests.support.restarts import start_and_kill
from tests.support.scripted_requests import effects
from tests.support.server import Server, text
from tests.support.stored_rows import stored_rows
from tests.support.strict_models import (
    CALL_CONTEXT,
    call_in_context,
    deepseek,
    gemini,
    has,
    sealed,
    signature,
    signed_call,
)

pytestmark = pytest.mark.any_database

SUM = Call("c1", "calculate", ('{"expression": "2+2"}',))
SLOW = Call("c1", "safe_effect", ('{"text": "safe", "gate": "slow"}',))
KEY = {"HERMES_API_KEY": "sk-0123456789", "HERMES_STREAM_RETRIES": "0"}
ENCRYPTED = "reasoning.encrypted_content"


@dataclass(frozen=True)
class Front:
    server: Server
    stub: ModelStub
    fallback: ModelStub

    def create(self, key: str | None = None, **body: Any) -> dict[str, Any]:
        with self.server.http(key) as client:
            answer = client.post("/v1/responses", json={"input": "hi", **body})
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        assert found["status"] == "completed", found["error"]
        return found

    def post(self, path: str, **body: Any) -> dict[str, Any]:
        with self.server.http() as client:
            answer = client.post(path, json=body)
        assert answer.status_code in (200, 201), answer.text
        found: dict[str, Any] = answer.json()
        return found

    def play_loop(self) -> None:
        """A turn with a call, whose reasoning the server wants back."""
        self.stub.play(Thought("because "), Calls((SUM,)), Finish("tool_calls"))
        self.stub.play(Thought("so "), Text("four"), Finish())

    @property
    def reasoning(self) -> list[str | None]:
        """Of the assistant's messages in the last request."""
        messages = self.stub.asked[-1].body["messages"]
        return [message.get("reasoning_content") for message in messages if message["role"] == "assistant"]


@pytest.fixture(scope="module")
def front(database: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    """A server in front of a strict model, with a fallback that is another provider."""
    with ModelStub() as stub, ModelStub() as fallback:
        stub.refuse = deepseek
        named = {"HERMES_PROVIDER": "deepseek", "HERMES_MODEL": "m", "HERMES_BASE_URL": stub.url}
        server = database.server(tmp_path_factory.mktemp("state") / "h", Server, **named, **KEY)
        elsewhere = {"provider": "custom", "model": "other", "base_url": fallback.url}
        (server.home / "config.yaml").write_text(json.dumps({"fallback_models": [elsewhere]}))
        server.start()
        yield Front(server, stub, fallback)
        server.kill()


def test_reasoning_goes_back_in_the_tool_loop_and_in_the_next_turn(front: Front) -> None:
    front.play_loop()
    first = front.create()
    assert front.reasoning == ["because "]
    front.create(previous_response_id=first["id"])
    assert front.reasoning == ["because ", "so "]
    check_log(front.server, first["id"])
    assert not has(first, "provider_state")
    assert not any(b"hermes.item.state" in frame for frame in front.server.replay(first["id"]))


def test_a_call_shown_as_mcp_call_keeps_its_reasoning(front: Front) -> None:
    front.play_loop()
    first = front.create(tools=[{"type": "mcp", "server_label": "hermes"}])
    assert [item["type"] for item in first["output"]] == ["reasoning", "mcp_call", "reasoning", "message"]
    front.create(previous_response_id=first["id"])
    assert front.reasoning == ["because ", "so "]


def test_a_conversation_keeps_it(front: Front) -> None:
    front.play_loop()
    front.create(conversation="kept")
    front.create(conversation="kept")
    assert front.reasoning == ["because ", "so "]
    with front.server.http() as client:
        listed = client.get("/v1/conversations/kept/items")
    assert listed.status_code == 200
    assert not has(listed.json(), "provider_state")


def test_a_fork_keeps_it(front: Front) -> None:
    session = front.post("/api/sessions")["session"]["id"]
    front.play_loop()
    front.post(f"/api/sessions/{session}/chat", message="hi")
    fork = front.post(f"/api/sessions/{session}/fork")["session"]["id"]
    front.post(f"/api/sessions/{fork}/chat", message="and now?")
    assert front.reasoning == ["because ", "so "]


def test_history_that_a_chat_client_resends_has_it(front: Front) -> None:
    asked = {"role": "user", "content": "How much is two and two, by the way?"}
    front.play_loop()
    answer = front.post("/v1/chat/completions", messages=[asked])["choices"][0]["message"]["content"]
    resent = [asked, {"role": "assistant", "content": answer}, {"role": "user", "content": "Sure?"}]
    front.post("/v1/chat/completions", messages=resent)
    assert front.reasoning == ["because ", "so "]


def test_another_owner_who_sends_the_same_history_gets_none_of_it(front: Front) -> None:
    asked = {"role": "user", "content": "What is it worth?"}
    front.play_loop()
    output = front.create(input=[asked])["output"]
    resent = [asked, *(item for item in output if item["type"] != "reasoning"), {"role": "user", "content": "Sure?"}]
    front.create(input=resent)
    assert front.reasoning == ["because ", "so "]
    front.create(create_key(front.server, "stranger"), input=resent)
    assert front.reasoning == ["", None]


def test_a_client_brings_no_state_of_its_own(front: Front) -> None:
    forged = {
        "provider": f"deepseek chat_completions {front.stub.url[7:-3]} m",
        "state": {"extra_content": {"a": "forged"}},
    }
    call = {"type": "mcp_call", "server_label": "hermes", "name": "calculate", "arguments": "{}", "output": "4"}
    front.create(input=[{"role": "user", "content": "hi"}, {**call, "provider_state": forged}])
    assert front.reasoning == [""]
    assert not has(front.stub.asked[-1].body, "forged")


def test_another_provider_that_takes_over_gets_none_of_it(front: Front) -> None:
    front.stub.play(Thought("because "), Calls((SUM,)), Finish("tool_calls"))
    front.stub.play(Cut())
    first = front.create()
    taken_over = front.fallback.asked[-1].body
    assert [message["role"] for message in taken_over["messages"][-3:]] == ["user", "assistant", "tool"]
    assert not has(taken_over, "because")
    front.create(previous_response_id=first["id"])
    assert front.reasoning == ["because ", None]


def test_an_unstored_turn_has_it_for_its_own_loop_and_stores_none(front: Front) -> None:
    front.stub.play(Thought("hush "), Calls((SUM,)), Finish("tool_calls"))
    front.create(store=False)
    assert front.reasoning == ["hush "]
    states = stored_rows(front.server, "response", "provider_state", is_stored=False)
    assert set(states) == {(None,)}
    assert "hush" not in str(stored_rows(front.server, "eventsegment", "frames"))


def test_a_delete_erases_it(front: Front) -> None:
    front.play_loop()
    response_id = front.create()["id"]
    [(state,)] = stored_rows(front.server, "response", "provider_state", id=response_id)
    assert has(state, "deepseek chat_completions")
    with front.server.http() as client:
        assert client.delete(f"/v1/responses/{response_id}").status_code == 200
    assert stored_rows(front.server, "response", "provider_state", id=response_id) == [(None,)]


def test_an_archive_has_it_in_the_events(front: Front) -> None:
    front.play_loop()
    response_id = front.create()["id"]
    record = json.loads(front.server.managed("export_responses", response_id).stdout)
    [(state,)] = stored_rows(front.server, "response", "provider_state", id=response_id)
    restored = check_response(record).row.provider_state
    assert restored == (json.loads(state) if isinstance(state, str) else state)
    assert [found["output_index"] for found in restored] == [0, 3]


@pytest.mark.fault
def test_a_turn_that_is_killed_in_its_tool_goes_on_with_it(make_server: Callable[..., Server], stub: ModelStub) -> None:
    stub.refuse = lambda body: deepseek(body) or gemini(body)
    named = {"HERMES_PROVIDER": "deepseek", "HERMES_MODEL": "m", "HERMES_BASE_URL": stub.url}
    server = make_server(**named, **KEY)
    stub.play(Thought("because "), signed_call(SLOW, "signed"), Finish("tool_calls"))
    stub.play(Text("done"), Finish())
    response_id = start_and_kill(server, lambda: effects(server, "safe") == 1)
    server.open_gate("slow")
    body = server.ended(response_id)
    assert (body["status"], text(body)) == ("completed", "done"), body["error"]
    message = stub.asked[-1].body["messages"][1]
    assert message["reasoning_content"] == "because "
    assert signature(message["tool_calls"][0]) == "signed"
    server.openai().responses.create(input="and now?", previous_response_id=response_id)
    assert stub.asked[-1].body["messages"][1] == message
    check_log(server, response_id)


def test_encrypted_reasoning_goes_back_and_only_clients_that_ask_see_it(
    make_server: Callable[..., Server], stub: ModelStub
) -> None:
    named = {"HERMES_PROVIDER": "custom", "HERMES_MODEL": "m", "HERMES_BASE_URL": stub.url}
    front = Front(make_server(**named, **KEY, HERMES_API_MODE="codex_responses"), stub, stub)
    for number, include in enumerate(([], [ENCRYPTED])):
        opaque = f"opaque{number}"
        stub.play(sealed(opaque), Text("thought"), Finish())
        first = front.create(include=include)
        assert stub.asked[-1].body["include"] == [ENCRYPTED]
        seen = first["output"][0].get("encrypted_content")
        assert seen == (opaque if include else None)
        public = b"".join(front.server.replay(first["id"]))
        assert (opaque.encode() in public) is bool(include)
        check_log(front.server, first["id"])
        front.create(previous_response_id=first["id"])
        assert stub.asked[-1].body["input"][1]["encrypted_content"] == opaque


def test_the_context_of_a_call_goes_back_in_the_next_turn_and_no_client_sees_it(
    make_server: Callable[..., Server], stub: ModelStub
) -> None:
    named = {"HERMES_PROVIDER": "custom", "HERMES_MODEL": "m", "HERMES_BASE_URL": stub.url}
    front = Front(make_server(**named, **KEY, HERMES_API_MODE="codex_responses"), stub, stub)
    stub.play(StreamStyle(), call_in_context("c1", "calculate", '{"expression": "2+2"}'), Finish("tool_calls"))
    first = front.create()
    assert "prog_1" not in json.dumps(first)
    assert b"prog_1" not in b"".join(front.server.replay(first["id"]))
    check_log(front.server, first["id"])
    front.create(previous_response_id=first["id"])
    for asked in stub.asked[-2:]:
        call, output = asked.body["input"][1:3]
        assert {name: call.get(name) for name in CALL_CONTEXT} == CALL_CONTEXT
        assert output["caller"] == CALL_CONTEXT["caller"]
