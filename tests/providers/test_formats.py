"""Structured output from servers that take it in another form, enforce it or not, and refuse it in their own words."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from gateway_app.agent.events import ModelFailed, Usage
from gateway_app.agent.model_call import ModelCall
from responses_app.protocol.token_estimate import tokens_of
from tests.support.model_stub import Answer, Call, Calls, Cut, Finish, Raw, Refusal, Text, Thought, sse
from tests.support.providers import CALL, COUNTED, Providers, record_round

CHAT = "chat_completions"
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "people": {"type": "integer"}},
    "required": ["city", "people"],
    "additionalProperties": False,
}
FORMAT = {"type": "json_schema", "name": "place", "schema": SCHEMA, "strict": True}
GOOD = '{"city": "Bern", "people": 137000}'
WRONG = '{"city": "Bern", "people": "many"}'
LOOK = {"type": "function", "name": "look", "parameters": {"type": "object"}}

# llama-cpp-python: server/types.py knows text and json_object; server/errors.py makes a 500 of it.
LITERAL_ERROR = (
    "[{'type': 'literal_error', 'loc': ('body', 'response_format', 'type'), "
    "'msg': \"Input should be 'text' or 'json_object'\", 'input': 'json_schema'}]"
)
LLAMA_CPP_PYTHON = Answer(500, json.dumps({"error": {"message": LITERAL_ERROR, "code": None}}).encode())
# deer-flow#545
DEEPSEEK = Answer(
    400, b'{"error": {"message": "This response_format type is unavailable now", "type": "invalid_request_error"}}'
)
# lmstudio-bug-tracker#189
LM_STUDIO = Answer(400, b"{\"error\": \"'response_format.type' must be 'json_schema' or 'text'\"}")
# llama.cpp server-common.cpp
GRAMMAR_WITH_TOOLS = Answer(400, b'{"error": {"message": "Cannot use custom grammar constraints with tools."}}')
# vLLM, xgrammar
BAD_FEATURES = Answer(400, b'{"error": {"message": "The provided JSON schema contains features not supported"}}')
SILENT_500 = Answer(500, b'{"error": {"message": "Internal Server Error"}}')
OVERLOADED = Answer(500, b'{"error": {"message": "The server is overloaded."}}')


def formatted(text_format: dict[str, Any] | None = None, **fields: Any) -> ModelCall:
    return replace(CALL, parameters={"text": {"format": text_format or FORMAT}}, **fields)


def asked_forms(providers: Providers) -> list[Any]:
    """The form of each request, and whether the model was shown the schema."""
    forms = []
    for asked in providers.stub.asked:
        given = asked.body.get("response_format") or {}
        name = given.get("type") or ("guided_json" if "guided_json" in asked.body else "none")
        if "schema" in given:
            name += "+schema"
        shown = '"people"' in asked.body["messages"][0]["content"] or "JSON object" in str(asked.body["messages"][0])
        forms.append((name, shown))
    return forms


async def ask_twice(providers: Providers, name: str, call: ModelCall, refusals: Sequence[Answer]) -> list[list[str]]:
    """The deviations of two calls of one provider; the first gets the refusals before its answer."""
    provider = providers.provider(CHAT, name)
    for refusal in refusals:
        providers.stub.play(refusal)
    deviations = []
    for _ in range(2):
        providers.stub.play(Text(GOOD), Finish())
        recorded = await record_round(provider, call=call)
        assert recorded.text == GOOD
        assert recorded.finish.usage == COUNTED
        deviations.append(recorded.deviations)
    return deviations


async def test_a_server_that_refuses_a_schema_by_a_500_is_asked_in_the_next_form_from_then_on(
    providers: Providers,
) -> None:
    deviations = await ask_twice(providers, "custom", formatted(), [LLAMA_CPP_PYTHON])
    assert asked_forms(providers) == [
        ("json_schema", False),
        ("json_object+schema", True),
        ("json_object+schema", True),
    ]
    assert deviations == [["no json_schema format"]] * 2


async def test_every_form_that_is_refused_is_left_out_up_to_instructions_alone(providers: Providers) -> None:
    await ask_twice(providers, "custom", formatted(), [DEEPSEEK, DEEPSEEK, LM_STUDIO])
    forms = [form for form, _ in asked_forms(providers)]
    assert forms == ["json_schema", "json_object+schema", "json_object", "none", "none"]


async def test_a_form_that_the_preset_knows_is_asked_first(providers: Providers) -> None:
    deviations = await ask_twice(providers, "llama-cpp-python", formatted(), [])
    assert deviations == [[], []]
    await ask_twice(providers, "deepseek", formatted(), [])
    forms = asked_forms(providers)
    assert forms[::2] == [("json_object+schema", False), ("json_object", True)]


async def test_a_server_without_json_object_gets_a_schema_of_any_object(providers: Providers) -> None:
    await ask_twice(providers, "lmstudio", formatted({"type": "json_object"}), [LM_STUDIO])
    bodies = [asked.body["response_format"] for asked in providers.stub.asked]
    assert [body["type"] for body in bodies] == ["json_object", "json_schema", "json_schema"]
    assert bodies[1]["json_schema"]["schema"] == {"type": "object"}


async def test_vllm_of_another_time_gets_guided_json(providers: Providers) -> None:
    await ask_twice(providers, "vllm", formatted(), [DEEPSEEK])
    assert asked_forms(providers)[1:] == [("guided_json", True)] * 2


async def test_a_format_that_is_refused_beside_tools_is_still_asked_for_without_tools(providers: Providers) -> None:
    provider = providers.provider(CHAT, "llamacpp")
    providers.stub.play(GRAMMAR_WITH_TOOLS)
    providers.stub.play(GRAMMAR_WITH_TOOLS)
    providers.stub.play(Calls((Call("c1", "look", ("{}",)),)), Finish("tool_calls"))
    recorded = await record_round(provider, call=formatted(client_tools=(LOOK,)))
    assert recorded.calls == [("look", "{}")]
    providers.stub.play(Text(GOOD), Finish())
    assert (await record_round(provider, call=formatted())).text == GOOD
    assert [form for form, _ in asked_forms(providers)] == ["json_schema", "json_object+schema", "none", "json_schema"]


async def test_a_schema_that_a_server_cannot_follow_changes_the_form_of_this_request_only(providers: Providers) -> None:
    provider = providers.provider(CHAT)
    providers.stub.play(BAD_FEATURES)
    for _ in range(2):
        providers.stub.play(Text(GOOD), Finish())
        assert (await record_round(provider, call=formatted())).text == GOOD
    assert [form for form, _ in asked_forms(providers)] == ["json_schema", "json_object+schema", "json_schema"]


async def test_the_refusal_of_a_server_with_one_form_reaches_the_client(providers: Providers) -> None:
    providers.stub.play(Answer(400, b'{"error": {"message": "Invalid schema for response_format: no type"}}'))
    with pytest.raises(ModelFailed, match="no type"):
        await record_round(providers.provider(CHAT, "openai"), call=formatted())
    providers.stub.play(
        Answer(400, b'{"error": {"message": "\'messages\' must contain the word \'json\' to use response_format"}}')
    )
    with pytest.raises(ModelFailed, match="the word 'json'"):
        await record_round(providers.provider(CHAT), call=formatted({"type": "json_object"}))
    assert providers.requests == 2


async def test_when_every_form_is_refused_the_first_refusal_is_reported(providers: Providers) -> None:
    provider = providers.provider(CHAT, "deepseek")
    providers.stub.play(DEEPSEEK)
    providers.stub.play(Answer(400, b'{"error": {"message": "No response_format of any kind"}}'))
    with pytest.raises(ModelFailed, match="unavailable now"):
        await record_round(provider, call=formatted())
    providers.stub.play(Text(GOOD), Finish())  # it may have been updated meanwhile
    assert (await record_round(provider, call=formatted())).text == GOOD
    assert [form for form, _ in asked_forms(providers)] == ["json_object", "none", "json_object"]


async def test_an_unclear_error_counts_from_the_second_time_on(providers: Providers) -> None:
    deviations = await ask_twice(providers, "custom", formatted(), [SILENT_500, SILENT_500])
    forms = [form for form, _ in asked_forms(providers)]
    assert forms == ["json_schema", "json_schema", "json_object+schema", "json_object+schema"]
    assert deviations == [["no json_schema format"]] * 2


async def test_a_form_that_once_worked_is_kept_through_unclear_errors(providers: Providers) -> None:
    provider = providers.provider(CHAT)
    providers.stub.play(Text(GOOD), Finish())
    await record_round(provider, call=formatted())
    for _ in range(3):
        providers.stub.play(SILENT_500)
    with pytest.raises(ModelFailed):
        await record_round(provider, call=formatted(), retries=2)
    assert {form for form, _ in asked_forms(providers)} == {"json_schema"}


@pytest.mark.parametrize("busy", [OVERLOADED, Answer(503, b"{}"), Answer(429, b"{}"), Answer(502, b"{}")])
async def test_an_overload_changes_no_form(providers: Providers, busy: Answer) -> None:
    provider = providers.provider(CHAT)
    for _ in range(3):
        providers.stub.play(busy)
    with pytest.raises(ModelFailed):
        await record_round(provider, call=formatted(), retries=2)
    providers.stub.play(Text(GOOD), Finish())
    assert (await record_round(provider, call=formatted())).deviations == []
    assert {form for form, _ in asked_forms(providers)} == {"json_schema"}


async def test_a_wrong_document_is_repaired_once_and_no_client_sees_it(providers: Providers) -> None:
    providers.stub.play(Thought("Hm. "), Text(WRONG[:9]), Text(WRONG[9:]), Finish())
    providers.stub.play(Text(f"```json\n{GOOD}\n```"), Finish())
    recorded = await record_round(providers.provider(CHAT, "deepseek"), call=formatted())
    assert (recorded.thought, recorded.text, recorded.cuts) == ("Hm. ", GOOD, 0)
    assert recorded.deviations == ["an answer that the schema does not allow"]
    assert recorded.finish.usage == COUNTED + COUNTED
    shown = providers.shown(1)
    assert WRONG in shown
    assert "$.people: 'many' is not of type 'integer'" in shown


@pytest.mark.parametrize("mode", ["chat_completions", "codex_responses"])
async def test_a_document_that_stays_wrong_fails_the_turn(providers: Providers, mode: str) -> None:
    providers.stub.play(Text("Bern has many people."), Finish())
    providers.stub.play(Text(WRONG), Finish())
    with pytest.raises(ModelFailed, match="is not of type 'integer'") as failed:
        await record_round(providers.provider(mode, "deepseek"), call=formatted())
    assert failed.value.usage == COUNTED + COUNTED
    assert providers.requests == 2


async def test_an_uncounted_repair_is_estimated_with_both_answers(providers: Providers) -> None:
    stop = Raw(sse({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}) + b"data: [DONE]\n\n")
    providers.stub.play(Text(WRONG), stop)
    providers.stub.play(Text(GOOD), stop)
    usage = (await record_round(providers.provider(CHAT, "deepseek"), call=formatted())).finish.usage
    assert usage.output_tokens == tokens_of(len(WRONG)) + tokens_of(len(GOOD))
    assert usage.input_tokens > 2 * CALL.input_tokens()
    assert usage.is_estimated


async def test_an_answer_that_is_no_document_passes_unchecked(providers: Providers) -> None:
    provider = providers.provider(CHAT, "deepseek")
    providers.stub.play(Text(GOOD[:9]), Finish("length"))
    cut = await record_round(provider, call=formatted())
    assert (cut.text, cut.finish.reason) == (GOOD[:9], "length")
    providers.stub.play(Refusal("I can't."), Finish())
    assert (await record_round(provider, call=formatted())).finish.reason == "stop"
    providers.stub.play(Text("Let me see. "), Calls((Call("c1", "look", ("{}",)),)), Finish("tool_calls"))
    called = await record_round(provider, call=formatted(client_tools=(LOOK,)))
    assert (called.text, called.calls) == ("Let me see. ", [("look", "{}")])
    assert providers.requests == 3


async def test_a_json_object_is_checked_where_the_server_enforces_no_form(providers: Providers) -> None:
    providers.stub.play(Text("Sure! Here is your JSON: {oops"), Finish())
    providers.stub.play(Text(GOOD), Finish())
    recorded = await record_round(providers.provider(CHAT, "deepseek"), call=formatted({"type": "json_object"}))
    assert (recorded.text, providers.requests) == (GOOD, 2)


async def test_a_held_answer_that_breaks_off_is_asked_for_again(providers: Providers) -> None:
    providers.stub.play(Text(GOOD[:9]), Cut())
    providers.stub.play(Text(GOOD), Finish())
    recorded = await record_round(providers.provider(CHAT, "deepseek"), call=formatted())
    assert (recorded.text, recorded.cuts, recorded.finish.reason) == (GOOD, 0, "stop")
    assert recorded.finish.usage.output_tokens == tokens_of(9) + COUNTED.output_tokens


async def test_a_limit_that_the_first_answer_used_up_leaves_no_repair(providers: Providers) -> None:
    providers.stub.play(Text(WRONG), Finish())
    recorded = await record_round(providers.provider(CHAT, "deepseek"), call=formatted(max_output_tokens=7))
    assert (recorded.text, recorded.finish.reason, providers.requests) == (WRONG, "length", 1)
    providers.stub.play(Text(WRONG), Finish())
    providers.stub.play(Text(GOOD), Finish())
    await record_round(providers.provider(CHAT, "deepseek"), call=formatted(max_output_tokens=20))
    assert providers.stub.asked[-1].body["max_tokens"] == 13


async def test_a_schema_that_nothing_can_be_compared_with_is_refused_before_the_model_is_asked(
    providers: Providers,
) -> None:
    call = formatted(FORMAT | {"schema": {"type": "objekt"}})
    with pytest.raises(ModelFailed, match="objekt") as failed:
        await record_round(providers.provider(CHAT, "deepseek"), call=call)
    assert (failed.value.code, failed.value.usage, providers.requests) == ("invalid_prompt", Usage(), 0)


async def test_a_responses_upstream_is_asked_by_instructions_at_last(providers: Providers) -> None:
    provider = providers.provider("codex_responses")
    providers.stub.play(Answer(400, b'{"error": {"message": "text.format is not supported", "param": "text.format"}}'))
    providers.stub.play(Answer(400, b'{"error": {"message": "text.format is not supported", "param": "text.format"}}'))
    providers.stub.play(Text(GOOD), Finish())
    assert (await record_round(provider, call=formatted())).text == GOOD
    given = [(asked.body.get("text") or {}).get("format") for asked in providers.stub.asked]
    assert [text_format and text_format["type"] for text_format in given] == ["json_schema", "json_object", None]
    assert '"people"' in providers.stub.asked[2].body["instructions"]
