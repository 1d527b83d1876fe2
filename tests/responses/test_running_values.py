"""What rows carry on along a chain is what a walk over the chain finds."""

import json
from collections.abc import Callable
from typing import Any

import openai
import pytest

from tests.support.long_conversations import LONG, MANAGED
from tests.support.server import Server, eventually, script

BEFORE = "0011"  # the migration before the one that added the values


def values(server: Server) -> dict[str, Any]:
    code = "from tests.support.long_chains import print_running_values as go; go()"
    found: dict[str, Any] = json.loads(server.manage("shell", "-c", code).splitlines()[-1])
    return found


def continue_in_every_way(server: Server) -> None:
    client = server.openai()
    model = "hermes-agent"
    first = client.responses.create(model=model, input="led one", instructions="Be short.")
    second = client.responses.create(model=model, input="led two", previous_response_id=first.id)
    client.responses.create(model=model, input="led three", previous_response_id=second.id, instructions="")
    branch = client.responses.create(model=model, input=LONG, previous_response_id=first.id, extra_body=MANAGED)
    client.responses.create(model=model, input="compacted", previous_response_id=branch.id, extra_body=MANAGED)
    history: list[Any] = [{"role": "user", "content": "resent one"}]
    answer = client.responses.create(model=model, input=history)
    history += [
        {"role": "assistant", "content": answer.output_text},
        {"role": "user", "content": "two"},
    ]
    client.responses.create(model=model, input=history)
    client.responses.create(model=model, input="unstored", previous_response_id=second.id, store=False)
    client.responses.compact(model=model, previous_response_id=second.id)
    for words in ("talk one", "talk two"):
        client.responses.create(model=model, input=words, conversation="talk")


def test_rows_hold_what_a_walk_finds_and_a_migration_finds_it_again(
    make_server: Callable[..., Server],
) -> None:
    server = make_server(HERMES_CONTEXT_LENGTH="100000")
    continue_in_every_way(server)
    found = values(server)
    assert len(found["counts"]) == 10
    assert [stored for stored, _ in found["counts"]] == [counted for _, counted in found["counts"]]
    assert max(depth for _, _, depth, _ in found["chains"]) == 2
    server.kill()
    server.manage("migrate", "responses_app", BEFORE, "--verbosity", "0")
    server.manage("migrate", "--verbosity", "0")
    migrated = values(server)
    assert (migrated["chains"], migrated["led"]) == (found["chains"], found["led"])
    assert {stored for stored, _ in migrated["counts"]} == {None}


@pytest.mark.any_database
def test_what_leaves_a_conversation_is_no_longer_counted(
    make_server: Callable[..., Server],
) -> None:
    server = make_server(HERMES_CONTEXT_LENGTH="2000", HERMES_COMPACT_SHARE="0")
    client = server.openai()
    items: Any = [{"type": "message", "role": "user", "content": f"own {LONG}"}]
    conversation = client.conversations.create(items=items)
    ask: dict[str, Any] = {"model": "hermes-agent", "conversation": conversation.id, "tools": []}
    with pytest.raises(openai.BadRequestError) as refused:
        client.responses.create(input=f"too much {LONG}", **ask)
    assert refused.value.code == "context_length_exceeded"
    own = next(iter(client.conversations.items.list(conversation.id)))
    assert own.id is not None
    client.conversations.items.delete(own.id, conversation_id=conversation.id)
    long = client.responses.create(input=f"fits now {LONG}", **ask)
    client.responses.delete(long.id)
    client.responses.create(input=f"fits again {LONG}", **ask)
    assert [stored - counted for stored, counted in values(server)["counts"][-1:]] == [0]


@pytest.mark.any_database
def test_the_output_of_a_call_is_taken_however_many_turns_ago_it_was_made(server: Server) -> None:
    client = server.openai()
    call = {"type": "function_call", "call_id": "old-call", "name": "f", "arguments": "{}"}
    done: Any = {"type": "function_call_output", "call_id": "old-call", "output": "done"}
    question = {"role": "user", "content": "begin"}
    last = client.responses.create(model="hermes-agent", input=[question, call, done])  # type: ignore[list-item]
    for number in range(20):
        last = client.responses.create(
            model="hermes-agent", input=script({"say": f"{number}"}), previous_response_id=last.id
        )
    again = client.responses.create(model="hermes-agent", input=[done], previous_response_id=last.id)
    assert again.status == "completed"
    unknown: Any = [{**done, "call_id": "never"}]
    with pytest.raises(openai.BadRequestError) as refused:
        client.responses.create(model="hermes-agent", input=unknown, previous_response_id=last.id)
    assert refused.value.param == "input[0].call_id"


@pytest.mark.any_database
def test_a_deleted_turn_far_back_is_reported_and_the_rest_is_shown(server: Server) -> None:
    client = server.openai()
    ids: list[str] = []
    for number in range(20):
        chained: dict[str, Any] = {"previous_response_id": ids[-1]} if ids else {}
        asked: dict[str, Any] = {"model": "hermes-agent", "input": f"far back {number:02}"}
        ids.append(client.responses.create(**asked, **chained).id)
    client.responses.delete(ids[1])
    with server.http() as raw:
        answer = raw.post("/v1/responses", json={"input": "far back end", "previous_response_id": ids[-1]})
    assert answer.headers["x-hermes-ignored"] == f"deleted turn {ids[1]}"
    eventually(lambda: server.model_calls("far back end"), what="the call of the model")
    texts = server.model_calls("far back end")[0]["texts"]
    asked_in = [text for text in texts if text.startswith("far back")]
    kept = [f"far back {number:02}" for number in range(20) if number != 1]
    assert asked_in == [*kept, "far back end"]
