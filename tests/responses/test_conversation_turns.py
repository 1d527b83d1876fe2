"""Responses inside a conversation: its items are their history, and theirs become its items."""

from typing import Any

import openai
import pytest

from tests.support.server import Server, script, text


def test_turns_read_and_extend_the_conversation(server: Server) -> None:
    client = server.openai()
    opening: Any = [{"type": "message", "role": "user", "content": "before any turn"}]
    conversation = client.conversations.create(items=opening)
    first = client.responses.create(model="hermes-agent", input="conv-first", conversation=conversation.id)
    assert first.conversation is not None
    assert first.conversation.id == conversation.id
    assert 'first: "before any turn"' in first.output_text
    second = client.responses.create(model="hermes-agent", input="conv-second", conversation={"id": conversation.id})
    assert "wrote 2 times" in second.output_text
    items = list(client.conversations.items.list(conversation.id, order="asc"))
    texts = [item.to_dict()["content"][0]["text"] for item in items]  # type: ignore[index]
    assert texts == ["before any turn", "conv-first", first.output_text, "conv-second", second.output_text]
    assert items[2].id == first.output[0].id


def test_a_new_name_makes_a_conversation_and_an_old_one_continues_it(server: Server) -> None:
    client = server.openai()
    first = client.responses.create(model="hermes-agent", input="by name", conversation="kitchen")
    second = client.responses.create(model="hermes-agent", input="again", conversation="kitchen")
    assert first.conversation == second.conversation
    assert 'first: "by name"' in second.output_text


def test_unknown_and_foreign_conversations_are_404(server: Server, other_tenant: str) -> None:
    stranger = server.openai(other_tenant)
    mine = server.openai().conversations.create()
    for client, reference in ((server.openai(), "conv_" + "0" * 32), (stranger, mine.id)):
        with pytest.raises(openai.NotFoundError) as refused:
            client.responses.create(model="hermes-agent", input="x", conversation=reference)
        assert refused.value.code == "conversation_not_found"


def test_turns_of_a_conversation_run_one_at_a_time(server: Server) -> None:
    client = server.openai()
    gate = script({"gate": "conversation"}, {"say": "gated answer"})
    first = client.responses.create(model="hermes-agent", input=gate, conversation="one-at-a-time", background=True)
    second = client.responses.create(
        model="hermes-agent", input="conv-after", conversation="one-at-a-time", background=True
    )
    assert second.status == "queued"
    server.open_gate("conversation")
    server.ended(second.id)
    assert "gated answer" in server.model_calls("conv-after")[0]["texts"]
    assert text(server.body(first.id)) == "gated answer"


def test_a_tool_round_trip_inside_a_conversation(server: Server) -> None:
    client = server.openai()
    tools: Any = [{"type": "function", "name": "get_weather", "parameters": None, "strict": None}]
    first = client.responses.create(model="hermes-agent", input="the weather?", conversation="weather", tools=tools)
    [call] = first.output
    output: Any = [{"type": "function_call_output", "call_id": call.call_id, "output": "hail"}]  # type: ignore[union-attr]
    second = client.responses.create(model="hermes-agent", input=output, conversation="weather", tools=tools)
    assert second.output_text == "The result is hail."


def test_an_unstored_turn_reads_the_conversation_and_leaves_it_as_it_was(server: Server) -> None:
    client = server.openai()
    conversation = client.conversations.create(items=[{"role": "user", "content": "kept"}])
    answer = client.responses.create(model="hermes-agent", input="gone", conversation=conversation.id, store=False)
    assert 'first: "kept"' in answer.output_text
    assert len(list(client.conversations.items.list(conversation.id))) == 1
