"""Turns that build on each other: chains, sessions, order."""

import threading

import openai
import pytest

from tests.support.server import (
    Server,
    eventually,
    script,
    text,
)
from tests.support.stored_rows import count_rows, stored_rows


def test_three_chained_turns_are_one_session_and_remember(server: Server) -> None:
    client = server.openai()
    previous: str | None = None
    sessions = set()
    for reply in ("alpha", "beta", "gamma"):
        raw = client.responses.with_raw_response.create(
            model="hermes-agent", input=reply, previous_response_id=previous or openai.omit
        )
        sessions.add(raw.headers["x-hermes-session-id"])
        answer = raw.parse()
        previous = answer.id
    assert len(sessions) == 1
    assert 'you wrote 2 times, first: "alpha"' in answer.output_text
    rows = stored_rows(server, "session", "turn_count", public_id=sessions.pop())
    assert rows == [(3,)]


def test_two_children_of_one_parent_do_not_see_each_other(server: Server) -> None:
    client = server.openai()
    parent = client.responses.create(model="hermes-agent", input="parent")
    for name in ("left", "right"):
        child = client.responses.create(model="hermes-agent", input=name, previous_response_id=parent.id)
        assert 'you wrote 1 times, first: "parent"' in child.output_text


def test_instructions_are_inherited_until_they_are_cleared(server: Server) -> None:
    client = server.openai()
    first = client.responses.create(model="hermes-agent", input="a", instructions="Be short.")
    second = client.responses.create(model="hermes-agent", input="b", previous_response_id=first.id)
    third = client.responses.create(model="hermes-agent", input="c", previous_response_id=second.id, instructions="")
    fourth = client.responses.create(model="hermes-agent", input="d", previous_response_id=third.id)
    assert "My instructions are: Be short." in second.output_text
    assert "My instructions" not in third.output_text + fourth.output_text
    assert (second.instructions, third.instructions) == (None, "")


def test_a_child_of_a_running_response_waits_and_then_knows_its_answer(server: Server) -> None:
    client = server.openai()
    asked = script({"gate": "parent-done"}, {"say": "the parent's words"})
    parent = client.responses.create(model="hermes-agent", input=asked, background=True)
    child = client.responses.create(
        model="hermes-agent", input="what came before?", background=True, previous_response_id=parent.id
    )
    assert child.status == "queued"
    assert not server.model_calls("what came before?")
    server.open_gate("parent-done")
    assert server.ended(child.id)["status"] == "completed"
    assert "the parent's words" in server.model_calls("what came before?")[0]["texts"]


def test_turns_of_a_session_run_one_at_a_time_in_order(server: Server) -> None:
    client = server.openai()
    header = {"X-Hermes-Session-Id": "in-order"}
    gate = script({"gate": "in-order"}, {"say": "first"})
    first = client.responses.create(model="hermes-agent", input=gate, background=True, extra_headers=header)
    later = [
        client.responses.create(model="hermes-agent", input=f"turn-{n}", background=True, extra_headers=header)
        for n in range(3)
    ]
    assert {response.status for response in later} == {"queued"}
    server.open_gate("in-order")
    for response in [first, *later]:
        server.ended(response.id)
    starts = [call["texts"][-1] for call in server.model_calls("in-order") if call["event"] == "started"]
    assert starts == [gate, "turn-0", "turn-1", "turn-2"]


def test_a_turn_that_brings_its_history_never_waits(server: Server) -> None:
    client = server.openai()
    header = {"X-Hermes-Session-Id": "busy"}
    gate = script({"gate": "busy"}, {"say": "x"})
    running = client.responses.create(model="hermes-agent", input=gate, background=True, extra_headers=header)
    assert client.responses.create(model="hermes-agent", input="free").status == "completed"
    server.open_gate("busy")
    server.ended(running.id)


def test_a_streaming_child_waits_as_queued_and_then_streams(server: Server) -> None:
    client = server.openai()
    gate = script({"gate": "stream-wait"}, {"say": "x"})
    parent = client.responses.create(model="hermes-agent", input=gate, background=True)
    eventually(lambda: server.body(parent.id)["status"] == "in_progress")  # and not counted as queued
    kinds: list[str] = []

    def read() -> None:
        with client.responses.stream(model="hermes-agent", input="y", previous_response_id=parent.id) as stream:
            kinds.extend(event.type for event in stream)

    reader = threading.Thread(target=read)
    reader.start()
    eventually(lambda: count_rows(server, "response", status="queued") >= 1)
    server.open_gate("stream-wait")
    reader.join(20)
    assert kinds[:3] == ["response.created", "response.queued", "response.in_progress"]
    assert kinds[-1] == "response.completed"


def test_a_chain_and_a_session_that_disagree_are_refused(server: Server) -> None:
    client = server.openai()
    first = client.responses.create(model="hermes-agent", input="a")
    with pytest.raises(openai.BadRequestError) as refused:
        client.responses.create(
            model="hermes-agent",
            input="b",
            previous_response_id=first.id,
            extra_headers={"X-Hermes-Session-Id": "another"},
        )
    assert refused.value.param == "X-Hermes-Session-Id"


def test_a_cancelled_parent_counts_with_what_it_had(server: Server) -> None:
    client = server.openai()
    parent = client.responses.create(
        model="hermes-agent", input=script({"say": "half a "}, {"gate": "never"}), background=True
    )
    eventually(lambda: text(server.body(parent.id)) == "half a ")
    client.responses.cancel(parent.id)
    client.responses.create(model="hermes-agent", input="after the cut", previous_response_id=parent.id)
    assert "half a " in server.model_calls("after the cut")[0]["texts"]


def test_message_items_of_every_role_reach_the_model(server: Server) -> None:
    items = [
        {"role": "system", "content": "S"},
        {"role": "developer", "content": [{"type": "input_text", "text": "D"}]},
        {"type": "message", "role": "user", "content": "U"},
        {"role": "assistant", "content": [{"type": "output_text", "text": "A"}]},
        {"role": "user", "content": "roles-marker"},
    ]
    server.openai().responses.create(model="hermes-agent", input=items)  # type: ignore[arg-type]
    assert server.model_calls("roles-marker")[0]["texts"] == ["S", "D", "U", "A", "roles-marker"]
