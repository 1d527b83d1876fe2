"""What goes back to a model's server with its items: its own state, and none of another."""

import json
from dataclasses import replace
from typing import Any

import pytest

from gateway_app.agent.answer_buffer import follow
from gateway_app.agent.model_call import ModelCall
from gateway_app.providers.openai.client import Upstream
from gateway_app.providers.openai.state import identity_of
from responses_app.protocol.items import Item
from tests.support.model_stub import Answer, Call, Calls, Cut, Finish, StreamStyle, Text, Thought
from tests.support.providers import ASKED, CALL, Providers, RecordedRound, record_round
from tests.support.strict_models import (
    CALL_CONTEXT,
    PLACEHOLDER,
    call_in_context,
    deepseek,
    detail,
    gemini,
    has,
    sealed,
    signature,
    signed_call,
)

LOOK = Call("c1", "look", ("{}",))
SEEN: Item = {"type": "function_call_output", "call_id": "c1", "output": "a cat"}
QUESTION: Item = {"type": "message", "role": "user", "content": "And now?"}
GEMINI = {"name": "gemini", "model": "gemini-3-pro"}


def after(found: RecordedRound, *items: Item) -> ModelCall:
    """The next call of the turn."""
    return follow(CALL, found.answer).followed_by(list(items))


def messages(providers: Providers, request: int = -1) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = providers.stub.asked[request].body["messages"]
    return [message for message in found if message["role"] != "system"]


async def test_required_reasoning_goes_back_with_every_message_of_a_tool_loop(providers: Providers) -> None:
    providers.stub.refuse = deepseek
    provider = providers.provider("chat_completions", "deepseek")
    providers.stub.play(Thought("because "), Thought("so"), Calls((LOOK,)), Finish("tool_calls"))
    first = await record_round(provider)
    await record_round(provider, call=after(first, SEEN))
    assert messages(providers)[1]["reasoning_content"] == "because so"
    await record_round(provider, call=after(first, SEEN, QUESTION))
    assert messages(providers)[1]["reasoning_content"] == "because so"


async def test_required_reasoning_that_the_model_left_out_is_empty(providers: Providers) -> None:
    providers.stub.refuse = deepseek
    provider = providers.provider("chat_completions", "deepseek")
    providers.stub.play(Calls((LOOK,)), Finish("tool_calls"))
    await record_round(provider, call=after(await record_round(provider), SEEN))
    assert messages(providers)[1]["reasoning_content"] == ""


async def test_reasoning_of_a_turn_without_calls_is_left_out(providers: Providers) -> None:
    for name in ("deepseek", "ollama"):
        provider = providers.provider("chat_completions", name)
        providers.stub.play(Thought("because"), Text("so"), Finish())
        await record_round(provider, call=after(await record_round(provider), QUESTION))
        assert messages(providers)[1] == {"role": "assistant", "content": "so"}


@pytest.mark.parametrize(
    ("name", "field"), [("ollama", "reasoning"), ("vllm", "reasoning"), ("llamacpp", "reasoning_content")]
)
async def test_optional_reasoning_goes_back_in_its_tool_loop_alone(providers: Providers, name: str, field: str) -> None:
    provider = providers.provider("chat_completions", name)
    providers.stub.play(Thought("because"), Calls((LOOK,)), Finish("tool_calls"))
    first = await record_round(provider)
    await record_round(provider, call=after(first, SEEN))
    assert messages(providers)[1][field] == "because"
    await record_round(provider, call=after(first, SEEN, QUESTION))
    assert not has(messages(providers), "because")


@pytest.mark.parametrize("name", ["openai", "mistral", "azure"])
async def test_servers_that_refuse_reasoning_get_none(providers: Providers, name: str) -> None:
    provider = providers.provider("chat_completions", name)
    providers.stub.play(Thought("because"), Calls((LOOK,)), Finish("tool_calls"))
    await record_round(provider, call=after(await record_round(provider), SEEN))
    assert not has(messages(providers), "because")


async def test_a_server_that_turns_out_to_refuse_reasoning_is_asked_without_it(providers: Providers) -> None:
    """As Groq does (freellmapi#1070)."""

    def rule(body: dict[str, Any]) -> str | None:
        refused = any("reasoning_content" in message for message in body["messages"])
        return "property 'reasoning_content' is unsupported" if refused else None

    providers.stub.refuse = rule
    provider = providers.provider("chat_completions", "custom")
    providers.stub.play(Thought("because"), Calls((LOOK,)), Finish("tool_calls"))
    next_call = after(await record_round(provider), SEEN)
    second = await record_round(provider, call=next_call)
    assert (second.text, second.deviations) == ("Hello wörld 🎉", ["reasoning not taken back"])
    assert providers.requests == 3
    await record_round(provider, call=next_call)
    assert providers.requests == 4


async def test_a_server_that_refuses_the_option_gets_the_reasoning_nevertheless(providers: Providers) -> None:
    provider = providers.provider("chat_completions", "openrouter")
    providers.stub.play(Thought("because"), Calls((LOOK,)), Finish("tool_calls"))
    call = replace(after(await record_round(provider), SEEN), chat_extras={"reasoning": {"effort": "low"}})
    providers.stub.play(refusal(message="Unsupported parameter: reasoning", param="reasoning"))
    found = await record_round(provider, call=call)
    assert found.deviations == ["no reasoning"]
    assert has(messages(providers), "because")


@pytest.mark.parametrize(("name", "model"), [("custom", "m-1"), ("deepseek", "m-2")])
async def test_another_provider_gets_nothing_of_it(providers: Providers, name: str, model: str) -> None:
    providers.stub.play(Thought("because"), signed_call(LOOK, "signed"), Finish("tool_calls"))
    first = await record_round(providers.provider("chat_completions", "deepseek"))
    other = providers.provider("chat_completions", name, model=model)
    await record_round(other, call=after(first, SEEN))
    assert not has(messages(providers), "because")
    assert not has(messages(providers), "signed")


async def test_reasoning_that_a_client_brings_is_used(providers: Providers) -> None:
    brought: list[Item] = [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "because"}]},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
    ]
    call = ModelCall(model="x", items=[*ASKED, *brought, SEEN])
    await record_round(providers.provider("chat_completions", "deepseek"), call=call)
    assert messages(providers)[1]["reasoning_content"] == "because"


@pytest.mark.parametrize("is_alone", [True, False])
async def test_the_signature_of_a_call_goes_back_with_it(providers: Providers, is_alone: bool) -> None:
    providers.stub.refuse = gemini
    provider = providers.provider("chat_completions", **GEMINI)
    other = signed_call(Call("c2", "look", ("{}",)), "", is_alone=False)
    providers.stub.play(signed_call(LOOK, "signed", is_alone=is_alone), other, Finish("tool_calls"))
    first = await record_round(provider)
    await record_round(provider, call=after(first, SEEN, {**SEEN, "call_id": "c2"}))
    calls = messages(providers)[1]["tool_calls"]
    assert [call["id"] for call in calls] == ["c1", "c2"]
    assert signature(calls[0]) == "signed"


async def test_calls_of_another_model_have_the_placeholder_that_gemini_takes(providers: Providers) -> None:
    providers.stub.refuse = gemini
    providers.stub.play(signed_call(LOOK, "foreign"), Finish("tool_calls"))
    first = await record_round(providers.provider("chat_completions", "gemini", model="gemini-4"))
    await record_round(providers.provider("chat_completions", **GEMINI), call=after(first, SEEN))
    assert signature(messages(providers)[1]["tool_calls"][0]) == PLACEHOLDER
    providers.stub.refuse = None
    older = providers.provider("chat_completions", "gemini", model="gemini-2.5-flash")
    await record_round(older, call=after(first, SEEN))
    assert "extra_content" not in messages(providers)[1]["tool_calls"][0]


async def test_reasoning_details_go_back_as_whole_blocks(providers: Providers) -> None:
    provider = providers.provider("chat_completions", "openrouter")
    text = {"type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0}
    encrypted = {"type": "reasoning.encrypted", "data": "opaque", "id": "c1", "index": 1}
    providers.stub.play(
        detail(**text, text="Let "),
        detail(**text, text="me see."),
        detail(**text, signature="signed"),
        detail(**encrypted),
        Calls((LOOK,)),
        Finish("tool_calls"),
    )
    first = await record_round(provider)
    await record_round(provider, call=after(first, SEEN))
    whole = [{**text, "text": "Let me see.", "signature": "signed"}, encrypted]
    assert messages(providers)[1]["reasoning_details"] == whole
    assert "reasoning" not in messages(providers)[1]


OPAQUE = {"type": "reasoning.encrypted", "data": "opaque", "index": 0}


async def test_details_belong_to_a_message_whose_text_was_held_back(providers: Providers) -> None:
    provider = providers.provider("chat_completions", "deepseek")  # its answers are checked
    providers.stub.play(detail(**OPAQUE), Text("{}"), Finish())
    schema = {"type": "json_schema", "name": "any", "schema": {"type": "object"}}
    formatted = replace(CALL, parameters={"text": {"format": schema}})
    first = await record_round(provider, call=formatted)
    await record_round(provider, call=after(first, QUESTION))
    assert messages(providers)[1] == {"role": "assistant", "content": "{}", "reasoning_details": [OPAQUE]}


async def test_details_belong_to_a_call_that_was_written_as_text(providers: Providers) -> None:
    provider = providers.provider("chat_completions", "lmstudio")
    offered = replace(CALL, client_tools=({"type": "function", "name": "look", "parameters": {}},))
    written = '<tool_call>{"name": "look", "arguments": {}}</tool_call>'
    providers.stub.play(detail(**OPAQUE), Text(written), Finish())
    first = await record_round(provider, call=offered)
    [call] = first.answer.calls()
    await record_round(provider, call=after(first, {**SEEN, "call_id": call.call_id}))
    assert messages(providers)[1]["reasoning_details"] == [OPAQUE]


async def test_details_without_an_item_are_dropped(providers: Providers) -> None:
    provider = providers.provider("chat_completions", "openrouter")
    providers.stub.play(detail(**OPAQUE), Finish())
    assert (await record_round(provider)).answer.items() == []


async def test_a_rest_that_begins_with_reasoning_is_joined_to_its_message(providers: Providers) -> None:
    provider = providers.provider("chat_completions", "custom")
    providers.stub.play(Text("one, "), Cut())
    providers.stub.play(Thought("Go on."), Text("two, "), Cut())
    providers.stub.play(Text("three"), Finish())
    assert (await record_round(provider)).text == "one, two, three"
    assert [message["role"] for message in messages(providers)] == ["user", "assistant", "user"]
    assert messages(providers)[1]["content"] == "one, two, "


async def test_encrypted_reasoning_goes_back_within_a_turn(providers: Providers) -> None:
    provider = providers.provider("codex_responses")
    providers.stub.play(sealed("opaque"), Calls((LOOK,)), Finish("tool_calls"))
    first = await record_round(provider)
    await record_round(provider, call=after(first, SEEN))
    assert providers.stub.asked[-1].body["input"][1] == {
        "type": "reasoning",
        "summary": [],
        "encrypted_content": "opaque",
    }
    await record_round(providers.provider("codex_responses", model="m-2"), call=after(first, SEEN))
    assert not has(providers.stub.asked[-1].body["input"], "opaque")


async def test_the_context_of_a_call_goes_back_with_it_and_its_caller_with_the_output(providers: Providers) -> None:
    provider = providers.provider("codex_responses")
    providers.stub.play(StreamStyle(), call_in_context("c1", "look"), Finish("tool_calls"))
    first = await record_round(provider)
    await record_round(provider, call=after(first, SEEN))
    call, output = providers.stub.asked[-1].body["input"][1:]
    made = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}
    assert (call, output) == (made | CALL_CONTEXT, SEEN | {"caller": CALL_CONTEXT["caller"]})
    await record_round(providers.provider("codex_responses", model="m-2"), call=after(first, SEEN))
    assert providers.stub.asked[-1].body["input"][1:] == [made, SEEN]


def refusal(**error: str) -> Answer:
    return Answer(400, json.dumps({"error": error}).encode())


async def test_encrypted_reasoning_that_can_not_be_read_any_more_is_left_out(providers: Providers) -> None:
    provider = providers.provider("codex_responses")
    providers.stub.play(sealed("opaque"), Calls((LOOK,)), Finish("tool_calls"))
    first = await record_round(provider)
    providers.stub.play(
        refusal(code="invalid_encrypted_content", message="The encrypted content could not be verified.")
    )
    second = await record_round(provider, call=after(first, SEEN))
    assert second.text == "Hello wörld 🎉"
    assert second.deviations == ["encrypted reasoning not taken back"]
    assert [item["type"] for item in providers.stub.asked[-1].body["input"]] == [
        "message",
        "function_call",
        "function_call_output",
    ]


async def test_a_model_that_encrypts_nothing_is_asked_without_it(providers: Providers) -> None:
    provider = providers.provider("codex_responses")
    refused = refusal(message="Encrypted content is not supported with this model.", param="include")
    providers.stub.play(refused)
    assert (await record_round(provider)).text == "Hello wörld 🎉"
    assert (await record_round(provider)).text == "Hello wörld 🎉"
    assert ["include" in asked.body for asked in providers.stub.asked] == [True, False, False]
    wanted = ModelCall(model="x", items=ASKED, parameters={"include": ["reasoning.encrypted_content"]})
    found = await record_round(provider, call=wanted)
    assert (found.text, found.deviations) == ("Hello wörld 🎉", ["no encrypted reasoning"])


def test_an_identity_has_no_credentials() -> None:
    upstream = Upstream("custom", "m", base_url="https://me:secret@example.invalid:8/v1", api_key="sk-secret")
    assert identity_of(upstream) == "custom chat_completions example.invalid:8 m"
