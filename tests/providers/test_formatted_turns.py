"""Structured output for a client, in front of a model's server that does not enforce a schema."""

from collections.abc import Iterator

import pytest

from tests.support.chat_client import post as post_chat
from tests.support.chat_client import user
from tests.support.checker import check_log
from tests.support.migrated_database import Database
from tests.support.model_stub import Call, Calls, Finish, ModelStub, Text
from tests.support.scripted_requests import respond
from tests.support.server import Server, events, streaming, text
from tests.support.stored_rows import stored_rows

pytestmark = pytest.mark.any_database

SCHEMA = {"type": "object", "properties": {"people": {"type": "integer"}}, "required": ["people"]}
FORMAT = {"type": "json_schema", "name": "place", "schema": SCHEMA}
GOOD = '{"people": 137000}'
WRONG = '{"people": "many"}'


@pytest.fixture(scope="module")
def stub() -> Iterator[ModelStub]:
    with ModelStub() as running:
        yield running


@pytest.fixture(scope="module")
def front(database: Database, stub: ModelStub, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    env = {"HERMES_PROVIDER": "deepseek", "HERMES_MODEL": "m", "HERMES_BASE_URL": stub.url, "HERMES_API_KEY": "k"}
    server = database.server(tmp_path_factory.mktemp("formats") / "h", Server, **env).start()
    yield server
    server.kill()


def test_a_stream_has_the_repaired_document_only(front: Server, stub: ModelStub) -> None:
    stub.play(Text(WRONG[:5]), Text(WRONG[5:]), Finish())
    stub.play(Text(GOOD[:5]), Text(GOOD[5:]), Finish())
    with streaming(front, input="hi", tools=[], text={"format": FORMAT}) as (_, received):
        frames = list(received)
    assert b"many" not in b"".join(frames)
    body = events(frames)[-1]["response"]
    deltas = [event["delta"] for event in events(frames) if event["type"] == "response.output_text.delta"]
    assert (body["status"], text(body), deltas) == ("completed", GOOD, [GOOD])
    assert body["usage"]["total_tokens"] == 36
    [(deviations,)] = stored_rows(front, "response", "protocol_deviations", id=body["id"])
    assert "an answer that the schema does not allow" in str(deviations)
    check_log(front, body["id"])


def test_a_document_that_stays_wrong_is_a_failure_on_every_surface(front: Server, stub: ModelStub) -> None:
    for _ in range(4):
        stub.play(Text(WRONG), Finish())
    body = respond(front, tools=[], text={"format": FORMAT})
    assert (body["status"], body["error"]["code"], body["output"]) == ("failed", "server_error", [])
    assert "$.people: 'many' is not of type 'integer'" in body["error"]["message"]
    assert body["usage"]["total_tokens"] == 36
    wanted = {"type": "json_schema", "json_schema": {"name": "place", "schema": SCHEMA}}
    failed = post_chat(front, [user("hi")], tools=[], response_format=wanted)
    assert failed.status_code >= 500
    assert "is not of type 'integer'" in failed.json()["error"]["message"]


def test_text_beside_a_call_is_no_part_of_the_document(front: Server, stub: ModelStub) -> None:
    calculate = Call("c1", "calculate", ('{"expression": "1+1"}',))
    stub.play(Text("Let me calculate that."), Calls((calculate,)), Finish("tool_calls"))
    stub.play(Text(GOOD), Finish())
    body = respond(front, text={"format": FORMAT})
    assert (body["status"], text(body)) == ("completed", GOOD)
    assert "Let me" not in str(body["output"])
    [(deviations,)] = stored_rows(front, "response", "protocol_deviations", id=body["id"])
    assert "text beside a call in place of a document" in str(deviations)
    check_log(front, body["id"])
