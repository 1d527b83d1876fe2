"""One server over strict model servers: its prompt, the fields of requests, and citations."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from openai.types.chat import ChatCompletion
from openai.types.responses import Response

from gateway_app.agent.core_prompt import TOOLS, WORKSPACE, WRITING
from tests.support.chat_client import complete, stream_completion, user
from tests.support.chat_client import post as post_chat
from tests.support.checker import check_log
from tests.support.hermes_client import ended_run, post
from tests.support.migrated_database import Database
from tests.support.model_stub import Answer, Finish, ModelStub, Raw, Text, sse
from tests.support.server import Server
from tests.support.session_client import create_session
from tests.support.stored_rows import stored_rows

pytestmark = pytest.mark.any_database


@dataclass(frozen=True)
class Front:
    server: Server
    stub: ModelStub

    def create(self, **body: Any) -> Any:
        return post(self.server, "/v1/responses", {"input": "hi", **body})

    def sent(self) -> dict[str, Any]:
        return self.stub.asked[-1].body

    def prompt(self, **body: Any) -> str:
        """The system message of a request."""
        assert self.create(**body).status_code == 200
        first, *others = self.sent()["messages"]
        assert "system" not in [message["role"] for message in others]
        return str(first["content"]) if first["role"] == "system" else ""


@pytest.fixture(scope="module")
def front(database: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    with ModelStub() as stub:
        profiles = {
            "own": {"core_prompt": "Own core.", "instructions": "Own profile."},
            "bare": {"core_prompt": False, "instructions": "Bare profile."},
            "picky": {"provider": "mistral", "model": "m", "base_url": stub.url, "api_key": "k"},
        }
        env = {"HERMES_PROVIDER": "custom", "HERMES_MODEL": "m", "HERMES_BASE_URL": stub.url}
        home = tmp_path_factory.mktemp("strict") / "h"
        server = database.server(home, Server, **env, HERMES_CORE_PROMPT="on", HERMES_STREAM_RETRIES="0")
        (server.home / "config.yaml").write_text(json.dumps({"profiles": profiles}))
        yield Front(server.start(), stub)
        server.kill()


# -- the prompt -------------------------------------------------------------------------
def test_the_prompt_is_core_then_profile_then_client(front: Front) -> None:
    prompt = front.prompt(instructions="Client.", input=[{"role": "developer", "content": "Late."}])
    assert prompt.startswith(WRITING)
    assert TOOLS in prompt
    assert WORKSPACE in prompt
    assert prompt.endswith("\n\nClient.\n\nLate.")
    assert front.prompt(model="own", instructions="Client.") == "Own core.\n\nOwn profile.\n\nClient."


def test_the_prompt_speaks_of_tools_only_where_the_server_offers_them(front: Front) -> None:
    look = {"type": "function", "name": "look", "parameters": {}}
    for tools in ([], [look]):
        prompt = front.prompt(tools=tools)
        assert prompt.startswith(WRITING)
        assert TOOLS not in prompt
        assert WORKSPACE not in prompt


def test_the_prompt_has_the_day_of_the_response(front: Front) -> None:
    answer = front.create()
    day = datetime.fromtimestamp(answer.json()["created_at"], UTC).date()
    assert f"Today is {day:%A}, {day.isoformat()} (UTC)." in front.sent()["messages"][0]["content"]


def test_a_profile_may_have_no_core_prompt(front: Front) -> None:
    assert front.prompt(model="bare") == "Bare profile."


# -- fields -----------------------------------------------------------------------------
SAMPLING = {"top_k": 3, "min_p": 0.1, "repetition_penalty": 1.1, "chat_template_kwargs": {"enable_thinking": False}}
OWN = {"hermes_mark": "x", "session_id": "s"}


def respond(front: Front, **fields: Any) -> Any:
    return front.create(**fields)


def chat(front: Front, **fields: Any) -> Any:
    return post_chat(front.server, [user("hi")], **fields)


def run(front: Front, **fields: Any) -> Any:
    fields.pop("session_id", None)  # this API knows it
    answer = post(front.server, "/v1/runs", {"input": "hi", **fields})
    ended_run(front.server, answer.json()["run_id"])
    return answer


def session_chat(front: Front, **fields: Any) -> Any:
    session_id = create_session(front.server)["id"]
    return post(front.server, f"/api/sessions/{session_id}/chat", {"message": "hi", **fields})


@pytest.mark.parametrize("send", [respond, chat, run, session_chat])
def test_sampling_fields_pass_from_every_api_to_a_server_that_takes_them(
    front: Front, send: Callable[..., Any]
) -> None:
    answer = send(front, **SAMPLING, seed=7)
    assert answer.status_code < 300, answer.text
    sent = front.sent()
    assert {name: sent[name] for name in SAMPLING} == SAMPLING
    assert sent["seed"] == 7
    assert "x-hermes-ignored" not in answer.headers


@pytest.mark.parametrize("send", [respond, chat])
def test_they_are_named_and_not_sent_where_the_server_refuses_them(front: Front, send: Callable[..., Any]) -> None:
    answer = send(front, **SAMPLING, model="picky")
    assert not SAMPLING.keys() & front.sent().keys()
    assert answer.headers["x-hermes-ignored"] == ", ".join(sorted(SAMPLING))


@pytest.mark.parametrize("send", [respond, chat, run, session_chat])
def test_fields_with_a_meaning_of_ours_never_leak(front: Front, send: Callable[..., Any]) -> None:
    answer = send(front, **OWN, metadata={"a": "b"})
    assert not {*OWN, "metadata", "store", "conversation"} & front.sent().keys()
    assert "hermes_mark" in answer.headers["x-hermes-ignored"]


def test_fields_of_one_api_are_none_of_the_other(front: Front) -> None:
    answer = front.create(n=2, max_tokens=5, response_format={"type": "json_object"}, stop="x")
    assert not {"n", "max_tokens", "response_format", "stop"} & front.sent().keys()
    assert answer.headers["x-hermes-ignored"] == "max_tokens, n, response_format, stop"
    answer = chat(front, previous_response_id="resp_1", background=True)
    assert not {"previous_response_id", "background"} & front.sent().keys()
    assert answer.headers["x-hermes-ignored"] == "background, previous_response_id"


def test_a_refused_field_is_on_the_row_of_the_response(front: Front) -> None:
    front.stub.play(Answer(400, b'{"error": {"message": "Unknown parameter: \'typical_p\'."}}'))
    answer = front.create(typical_p=0.5)
    assert answer.json()["status"] == "completed"
    [(deviations,)] = stored_rows(front.server, "response", "protocol_deviations", id=answer.json()["id"])
    assert json.loads(deviations) == ["no typical_p"]


# -- citations --------------------------------------------------------------------------
CITED = {"url": "https://example.invalid/a", "title": "A", "start_index": 0, "end_index": 2}
IN_CHAT = {"type": "url_citation", "url_citation": CITED}


def play_citation(front: Front) -> None:
    choice = {"index": 0, "delta": {"annotations": [IN_CHAT]}, "finish_reason": None}
    front.stub.play(Text("so"), Raw(sse({"choices": [choice]})), Finish())


def test_citations_of_a_chat_upstream_come_out_of_every_api(front: Front) -> None:
    play_citation(front)
    body = front.create().json()
    assert body["output"][0]["content"][0]["annotations"] == [{"type": "url_citation", **CITED}]
    Response.model_validate(body, strict=True)
    check_log(front.server, body["id"])
    play_citation(front)
    whole = complete(front.server, [user("hi")])
    assert whole["choices"][0]["message"]["annotations"] == [IN_CHAT]
    ChatCompletion.model_validate(whole, strict=True)
    play_citation(front)
    streamed = stream_completion(front.server, [user("hi")])
    assert [delta["annotations"] for delta in streamed.deltas if "annotations" in delta] == [[IN_CHAT]]
