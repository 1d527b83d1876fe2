"""Structured output for a client, in front of servers that take a schema and may not enforce it."""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.support.chat_client import post as post_chat
from tests.support.chat_client import stream_completion, user
from tests.support.checker import check_log
from tests.support.migrated_database import Database
from tests.support.model_stub import Finish, ModelStub, Text
from tests.support.scripted_requests import respond
from tests.support.server import Server, events, streaming, text
from tests.support.stored_rows import stored_rows

pytestmark = pytest.mark.any_database

SCHEMA = {"type": "object", "properties": {"people": {"type": "integer"}}, "required": ["people"]}
FORMAT = {"type": "json_schema", "name": "place", "schema": SCHEMA}
CHAT_FORMAT = {"type": "json_schema", "json_schema": {"name": "place", "schema": SCHEMA}}
GOOD = '{"people": 137000}'
WRONG = '{"people": "many"}'
PROSE = "Bern has 137,000 people."
# Each profile is an upstream of its own, of which nothing is known yet.
NEW = ("responses", "responses-stream", "chat", "chat-stream", "wrong-responses", "wrong-chat")


@pytest.fixture(scope="module")
def stub() -> Iterator[ModelStub]:
    with ModelStub() as running:
        yield running


@pytest.fixture(scope="module")
def front(database: Database, stub: ModelStub, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = database.server(tmp_path_factory.mktemp("believed") / "h", Server)
    profiles: dict[str, Any] = {}
    for name in NEW:
        profiles[name] = {"provider": "custom", "base_url": stub.url, "model": name}
    (server.home / "config.yaml").write_text(yaml.safe_dump({"profiles": profiles}))
    server.start()
    yield server
    server.kill()


def play(stub: ModelStub, *texts: str) -> None:
    for answer in texts:
        middle = len(answer) // 2
        stub.play(Text(answer[:middle]), Text(answer[middle:]), Finish())


def answer_stream(front: Server, model: str) -> tuple[dict[str, Any], list[str]]:
    with streaming(front, input="hi", model=model, tools=[], text={"format": FORMAT}) as (_, received):
        seen = events(list(received))
    body = seen[-1]["response"]
    check_log(front, body["id"])
    return body, [event["delta"] for event in seen if event["type"] == "response.output_text.delta"]


def test_prose_in_place_of_a_first_document_never_reaches_a_client(front: Server, stub: ModelStub) -> None:
    play(stub, PROSE, GOOD)
    body = respond(front, model="responses", tools=[], text={"format": FORMAT})
    assert (body["status"], text(body), body["usage"]["total_tokens"]) == ("completed", GOOD, 36)
    [(deviations,)] = stored_rows(front, "response", "protocol_deviations", id=body["id"])
    assert "json_schema format without effect" in str(deviations)
    play(stub, PROSE, GOOD)
    streamed, deltas = answer_stream(front, "responses-stream")
    assert (streamed["status"], deltas) == ("completed", [GOOD])
    play(stub, PROSE, GOOD)
    completed = post_chat(front, [user("hi")], model="chat", tools=[], response_format=CHAT_FORMAT)
    assert completed.json()["choices"][0]["message"]["content"] == GOOD
    play(stub, PROSE, GOOD)
    completion = stream_completion(front, [user("hi")], model="chat-stream", tools=[], response_format=CHAT_FORMAT)
    assert (completion.joined("content"), completion.error, completion.reasons) == (GOOD, None, ["stop"])


def test_a_wrong_document_behind_right_ones_fails_the_turn_and_the_next_one_is_checked(
    front: Server, stub: ModelStub
) -> None:
    play(stub, GOOD, GOOD, WRONG, WRONG, GOOD)
    assert answer_stream(front, "wrong-responses")[1] == [GOOD]
    assert answer_stream(front, "wrong-responses")[1] == [GOOD[:9], GOOD[9:]]
    body, deltas = answer_stream(front, "wrong-responses")
    assert (body["status"], "".join(deltas), body["error"]["code"]) == ("failed", WRONG, "server_error")
    assert "'many' is not of type 'integer'" in body["error"]["message"]
    assert (body["output"][0]["status"], body["usage"]["total_tokens"]) == ("incomplete", 18)
    body, deltas = answer_stream(front, "wrong-responses")
    assert (body["status"], deltas) == ("completed", [GOOD])


def test_a_wrong_document_behind_a_right_one_fails_a_chat(front: Server, stub: ModelStub) -> None:
    play(stub, GOOD, WRONG, GOOD)
    fields: dict[str, Any] = {"model": "wrong-chat", "tools": [], "response_format": CHAT_FORMAT}
    assert stream_completion(front, [user("hi")], **fields).joined("content") == GOOD
    failed = stream_completion(front, [user("hi")], **fields)
    assert failed.error is not None
    assert "'many' is not of type 'integer'" in failed.error["message"]
    assert failed.reasons == []
    repeated = post_chat(front, [user("hi")], **fields)
    assert repeated.json()["choices"][0]["message"]["content"] == GOOD
