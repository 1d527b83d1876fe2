"""``context_management``: a conversation that grows too long is summed up within the turn that finds it so."""

from typing import Any

import openai
import pytest

from responses_app.protocol.items import Item
from responses_app.protocol.truncation import newest_that_fit
from tests.support.checker import check_log
from tests.support.long_conversations import (
    LONG,
    MANAGED,
    SUMMARY,
    THRESHOLD,
    create,
    kinds,
)
from tests.support.server import Server, script, text
from tests.support.stored_rows import count_rows
from tests.support.websockets import socket


def shown(server: Server, marker: str) -> list[str]:
    texts: list[str] = server.model_calls(marker)[-1]["texts"]
    return texts


def started(server: Server, marker: str) -> int:
    return sum(call["event"] == "started" for call in server.model_calls(marker))


def test_a_long_chain_is_summed_up_and_goes_on_from_the_summary(server: Server) -> None:
    first = create(server, input=f"auto-first {LONG}", **MANAGED)
    assert kinds(first) == ["message"]  # one question is never summed up: it has to be answered
    second = create(server, input="auto-second", previous_response_id=first["id"], **MANAGED)
    assert kinds(second) == ["compaction", "message"]
    seen = shown(server, "auto-second")
    assert seen[0].startswith(SUMMARY)
    assert "The user wrote 1 times" in seen[0]
    assert seen[1:] == ["auto-second"]
    third = create(server, input="auto-third", previous_response_id=second["id"], **MANAGED)
    assert kinds(third) == ["message"]
    later = shown(server, "auto-third")
    assert later[:2] == seen
    assert later[2:] == [text(second), "auto-third"]
    without = create(server, input="auto-fourth", previous_response_id=third["id"])  # without the option
    assert shown(server, "auto-fourth")[0] == seen[0]
    for body in (first, second, third, without):
        check_log(server, body["id"])


def test_the_stream_is_one_the_sdk_reads(server: Server) -> None:
    first = create(server, input=f"streamed-first {LONG}")
    with server.openai().responses.stream(
        model="hermes-agent", input="streamed-second", previous_response_id=first["id"], extra_body=MANAGED
    ) as stream:
        found = list(stream)
        final = stream.get_final_response()
    reported = [event.type for event in found]
    at = reported.index("response.compaction.compacting")
    assert reported[at - 1 : at + 2] == [
        "response.output_item.added",
        "response.compaction.compacting",
        "response.output_item.done",
    ]
    assert [item.type for item in final.output] == ["compaction", "message"]
    assert final.usage is not None
    counted = server.model_calls("streamed-second")
    assert counted
    assert final.usage.output_tokens > len(final.output_text.split())  # the summary was paid for too


def test_the_typed_parameter_of_the_sdk_is_taken(server: Server) -> None:
    first = create(server, input=f"typed-first {LONG}")
    made = server.openai().responses.create(
        model="hermes-agent",
        input="typed-second",
        previous_response_id=first["id"],
        context_management=[{"type": "compaction", "compact_threshold": THRESHOLD}],
    )
    assert [item.type for item in made.output] == ["compaction", "message"]


def test_a_client_that_keeps_its_history_itself_may_send_all_of_it(server: Server) -> None:
    history: list[Any] = [{"role": "user", "content": f"stateless-first {LONG}"}]
    history += create(server, input=history, store=False, **MANAGED)["output"]
    history.append({"role": "user", "content": "stateless-second"})
    second = create(server, input=history, store=False, **MANAGED)
    assert kinds(second) == ["compaction", "message"]
    history += [*second["output"], {"role": "user", "content": "stateless-third"}]
    pruned = history[-3:]
    assert pruned[0]["type"] == "compaction"
    for sent in (history, pruned):
        third = create(server, input=sent, store=False, **MANAGED)
        assert kinds(third) == ["message"]
        seen = shown(server, "stateless-third")
        assert seen[0].startswith(SUMMARY)
        assert [seen[1], seen[3]] == ["stateless-second", "stateless-third"]


def test_history_that_is_sent_again_is_known_with_its_summary(server: Server) -> None:
    first = create(server, input=f"known-first {LONG}")
    second = create(server, input="known-second", previous_response_id=first["id"], **MANAGED)
    asked = [{"role": "user", "content": f"known-first {LONG}"}, *first["output"]]
    asked += [{"role": "user", "content": "known-second"}, *second["output"]]
    third = create(server, input=[*asked, {"role": "user", "content": "known-third"}])
    assert count_rows(server, "inputitem", response_id=third["id"]) == 1
    assert shown(server, "known-third")[0].startswith(SUMMARY)


def test_a_conversation_goes_on_from_its_newest_summary(server: Server) -> None:
    conversation = server.openai().conversations.create().id
    create(server, input=f"conv-first {LONG}", conversation=conversation)
    create(server, input="conv-second", conversation=conversation, **MANAGED)
    create(server, input=f"conv-third {LONG}", conversation=conversation)
    last = create(server, input="conv-fourth", conversation=conversation, **MANAGED)
    assert kinds(last) == ["compaction", "message"]
    asked = [call for call in server.model_calls("conv-third") if "an earlier summary" in call["texts"][0]]
    assert asked
    create(server, input="conv-fifth", conversation=conversation)
    seen = shown(server, "conv-fifth")
    assert sum(entry.startswith(SUMMARY) for entry in seen) == 1
    assert seen[1] == "conv-fourth"
    listed = server.openai().conversations.items.list(conversation, order="asc", limit=100).data
    assert [item.type for item in listed].count("compaction") == 2


def test_between_rounds_the_request_stays_in_front_of_the_summary(server: Server) -> None:
    asked = script({"call": "effect", "arguments": {"text": f"rounds-output {LONG}"}})
    body = create(server, input=asked, **MANAGED)
    assert body["status"] == "completed"
    assert kinds(body) == ["function_call", "function_call_output", "compaction", "message"]
    seen = shown(server, "entries were summed up")
    assert (seen[0], seen[1].startswith(SUMMARY)) == (asked, True)
    check_log(server, body["id"])


def test_a_run_is_compacted_too(server: Server) -> None:
    first = create(server, input=f"run-first {LONG}")
    with server.http() as client:
        made = client.post("/v1/runs", json={"input": "run-second", "previous_response_id": first["id"], **MANAGED})
        run = made.json()
        body = server.ended(run["response_id"])
        assert kinds(body) == ["compaction", "message"]
        reported = client.get(f"/v1/runs/{run['run_id']}").json()
    assert reported["output"] == text(body)


def test_a_socket_remembers_the_summary(server: Server) -> None:
    with socket(server) as connection:
        first = connection.ask(input=f"socket-first {LONG}", store=False)["response"]
        second = connection.ask(input="socket-second", store=False, previous_response_id=first["id"], **MANAGED)[
            "response"
        ]
        assert kinds(second) == ["compaction", "message"]
        connection.ask(input="socket-third", store=False, previous_response_id=second["id"])
    assert shown(server, "socket-third")[0].startswith(SUMMARY)


def test_short_conversations_are_left_alone(server: Server) -> None:
    first = create(server, input="short-first", **MANAGED)
    second = create(server, input="short-second", previous_response_id=first["id"], **MANAGED)
    assert kinds(second) == ["message"]
    assert started(server, "short-second") == 1


@pytest.mark.parametrize(
    ("value", "param"),
    [
        ({}, "context_management"),
        ([5], "context_management[0]"),
        ([{}], "context_management[0].type"),
        ([{"type": "truncation"}], "context_management[0].type"),
        ([{"type": "compaction", "compact_threshold": 999}], "context_management[0].compact_threshold"),
        ([{"type": "compaction", "compact_threshold": "many"}], "context_management[0].compact_threshold"),
        ([{"type": "compaction", "compact_threshold": True}], "context_management[0].compact_threshold"),
        ([{"type": "compaction"}, {"type": "compaction"}], "context_management[1]"),
    ],
)
def test_bad_values_name_the_field(server: Server, value: Any, param: str) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        server.openai().responses.create(model="hermes-agent", input="x", context_management=value)
    assert refused.value.param == param


@pytest.mark.parametrize("value", [[], None, [{"type": "compaction"}], [{"type": "compaction", "new": 1}]])
def test_what_may_be_left_out_may_be_left_out(server: Server, value: Any) -> None:
    with server.http() as client:
        answer = client.post("/v1/responses", json={"input": "x", "context_management": value})
    assert answer.status_code == 200
    named = answer.headers.get("x-hermes-ignored")
    assert named == ("context_management[0].new" if value and "new" in value[0] else None)


def test_truncation_drops_turns_and_never_a_summary() -> None:
    summary: Item = {"type": "message", "role": "user", "content": SUMMARY, "compacted": "summary"}
    first: Item = {"type": "message", "role": "user", "content": f"first {LONG}"}
    second: Item = {"type": "message", "role": "user", "content": f"second {LONG}"}
    older = [first, summary, second]
    assert newest_that_fit(older, 5000) == older
    assert newest_that_fit(older, 1500) == [summary, second]
    assert newest_that_fit(older, 100) == [summary]
