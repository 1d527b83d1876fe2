"""Structured output from servers that take a form and are believed to enforce it: every answer is checked."""

from dataclasses import replace
from typing import Any

import pytest

from gateway_app.agent.events import MessageStarted, ModelFailed, RefusalDelta, TextDelta
from gateway_app.agent.model_call import ModelCall
from gateway_app.providers.openai.provider import OpenAIProvider
from tests.support.model_stub import Answer, Call, Calls, Cut, Finish, Raw, Refusal, Text, Thought, sse
from tests.support.providers import CALL, COUNTED, Providers, RecordedRound, record_round

CHAT, RESPONSES = "chat_completions", "codex_responses"
SCHEMA = {"type": "object", "properties": {"people": {"type": "integer"}}, "required": ["people"]}
FORMAT = {"type": "json_schema", "name": "place", "schema": SCHEMA}
GOOD = '{"people": 137000}'
WRONG = '{"people": "many"}'
PROSE = "Bern has 137,000 people."
LOOK = {"type": "function", "name": "look", "parameters": {"type": "object"}}


def formatted(text_format: dict[str, Any] | None = None, **fields: Any) -> ModelCall:
    return replace(CALL, parameters={"text": {"format": text_format or FORMAT}}, **fields)


def pieces(recorded: RecordedRound) -> list[str]:
    return [event.text for event in recorded.events if isinstance(event, TextDelta)]


def asked_forms(providers: Providers) -> list[tuple[str, bool]]:
    """The form of each request, and whether the model was shown the schema."""
    forms = []
    for asked in providers.stub.asked:
        body = asked.body
        given = body.get("response_format") or (body.get("text") or {}).get("format") or {}
        name = given.get("type", "none")
        if "schema" in given and name == "json_object":
            name += "+schema"
        instructions = body.get("instructions") or str(body.get("messages", [""])[0])
        forms.append((name, "people" in instructions))
    return forms


async def proven(providers: Providers, mode: str, name: str = "custom", **fields: Any) -> OpenAIProvider:
    """A provider whose first document was right."""
    provider = providers.provider(mode, name)
    providers.stub.play(Text(GOOD), Finish())
    await record_round(provider, call=formatted(**fields))
    return provider


async def test_the_first_document_is_held_back_and_the_next_ones_stream(providers: Providers, mode: str) -> None:
    provider = providers.provider(mode)
    received = []
    for _ in range(2):
        providers.stub.play(Thought("Hm. "), Text(" \n"), Text(GOOD[:9]), Text(GOOD[9:]), Finish())
        recorded = await record_round(provider, call=formatted())
        assert (recorded.thought, recorded.deviations, recorded.finish.usage) == ("Hm. ", [], COUNTED)
        received.append(pieces(recorded))
    assert received == [[GOOD], [f" \n{GOOD[:9]}", GOOD[9:]]]
    assert asked_forms(providers) == [("json_schema", False)] * 2


@pytest.mark.parametrize("bad", [PROSE, WRONG, ""])
async def test_a_server_that_ignores_the_schema_is_asked_in_the_next_form_from_then_on(
    providers: Providers, mode: str, bad: str
) -> None:
    provider = providers.provider(mode, "openrouter")
    providers.stub.play(Text(bad), Finish())
    for _ in range(2):
        providers.stub.play(Text(GOOD), Finish())
    first, second = [await record_round(provider, call=formatted()) for _ in range(2)]
    assert (pieces(first), pieces(second)) == ([GOOD], [GOOD])
    assert asked_forms(providers) == [("json_schema", False), ("json_object", True), ("json_object", True)]
    assert first.deviations == ["json_schema format without effect", "no json_schema format"]
    assert second.deviations == ["no json_schema format"]
    assert (first.finish.usage, second.finish.usage) == (COUNTED + COUNTED, COUNTED)


async def test_a_server_with_one_form_is_asked_in_it_with_instructions_and_a_repair(
    providers: Providers, mode: str
) -> None:
    provider = providers.provider(mode, "ollama")
    for text in (PROSE, WRONG, GOOD, GOOD):
        providers.stub.play(Text(text), Finish())
    for _ in range(2):
        assert (await record_round(provider, call=formatted())).text == GOOD
    assert asked_forms(providers) == [("json_schema", False), *[("json_schema", True)] * 3]
    assert "'many' is not of type 'integer'" in providers.shown(2)


async def test_a_document_that_stays_wrong_in_the_next_form_fails(providers: Providers) -> None:
    for text in (PROSE, PROSE, WRONG):
        providers.stub.play(Text(text), Finish())
    with pytest.raises(ModelFailed, match="also after a second request") as failed:
        await record_round(providers.provider(CHAT), call=formatted())
    assert failed.value.usage == COUNTED + COUNTED + COUNTED
    assert providers.requests == 3


async def test_a_json_object_that_is_none_is_asked_for_again(providers: Providers, mode: str) -> None:
    provider = providers.provider(mode)
    for text in (PROSE, GOOD):
        providers.stub.play(Text(text), Finish())
    recorded = await record_round(provider, call=formatted({"type": "json_object"}))
    assert (recorded.text, recorded.deviations[0]) == (GOOD, "json_object format without effect")


async def test_prose_of_a_server_that_was_right_before_is_not_sent(providers: Providers, mode: str) -> None:
    provider = await proven(providers, mode)
    providers.stub.play(Text(" "), Text(PROSE[:9]), Text(PROSE[9:]), Finish())
    providers.stub.play(Text(GOOD), Finish())
    recorded = await record_round(provider, call=formatted())
    assert (recorded.text, recorded.cuts) == (GOOD, 0)
    assert "json_schema format without effect" in recorded.deviations


async def test_a_wrong_document_that_was_streamed_fails_and_the_next_answer_is_checked_first(
    providers: Providers, mode: str
) -> None:
    provider = await proven(providers, mode)
    providers.stub.play(Text(WRONG[:9]), Text(WRONG[9:]), Finish())
    with pytest.raises(ModelFailed, match=r"'many' is not of type 'integer'.*ask again") as failed:
        await record_round(provider, call=formatted())
    assert (failed.value.usage, failed.value.is_transient, providers.requests) == (COUNTED, False, 2)
    for text in (WRONG, GOOD):
        providers.stub.play(Text(text), Finish())
    assert (await record_round(provider, call=formatted())).text == GOOD
    assert asked_forms(providers)[2:] == [(asked_forms(providers)[2][0], True)] * 2


async def test_a_code_fence_is_removed_and_shows_that_the_form_has_no_effect(providers: Providers) -> None:
    provider = providers.provider(CHAT, "ollama")
    for _ in range(2):
        providers.stub.play(Text(f"```json\n{GOOD}\n```"), Finish())
        assert pieces(await record_round(provider, call=formatted())) == [GOOD]
    assert asked_forms(providers) == [("json_schema", False), ("json_schema", True)]


async def test_what_is_no_document_proves_nothing_and_passes(providers: Providers, mode: str) -> None:
    provider = providers.provider(mode)
    providers.stub.play(Text(GOOD[:9]), Finish("length"))
    cut = await record_round(provider, call=formatted())
    assert (cut.text, cut.finish.reason) == (GOOD[:9], "length")
    providers.stub.play(Refusal("I can't."), Finish())
    refused = await record_round(provider, call=formatted())
    assert RefusalDelta("I can't.") in refused.events
    providers.stub.play(Calls((Call("c1", "look", ("{}",)),)), Finish("tool_calls"))
    called = await record_round(provider, call=formatted(client_tools=(LOOK,)))
    assert called.calls == [("look", "{}")]
    providers.stub.play(Text(GOOD[:9]), Text(GOOD[9:]), Finish())
    assert pieces(await record_round(provider, call=formatted())) == [GOOD]
    assert [form for form, _ in asked_forms(providers)] == ["json_schema"] * 4


async def test_a_first_document_that_breaks_off_is_asked_for_again(providers: Providers, mode: str) -> None:
    providers.stub.play(Text(GOOD[:9]), Cut())
    providers.stub.play(Text(GOOD), Finish())
    recorded = await record_round(providers.provider(mode), call=formatted())
    assert (recorded.text, recorded.cuts, recorded.finish.reason) == (GOOD, 0, "stop")


async def test_a_limit_that_a_wrong_document_used_up_is_an_incomplete_answer(providers: Providers) -> None:
    providers.stub.play(Text(WRONG), Finish())
    recorded = await record_round(providers.provider(CHAT), call=formatted(max_output_tokens=7))
    assert (recorded.text, recorded.finish.reason, providers.requests) == (WRONG, "length", 1)
    for text in (WRONG, GOOD):
        providers.stub.play(Text(text), Finish())
    await record_round(providers.provider(CHAT), call=formatted(max_output_tokens=20))
    assert providers.stub.asked[-1].body["max_tokens"] == 13


async def test_a_schema_that_only_the_upstream_understands_is_left_to_it(providers: Providers, mode: str) -> None:
    provider = providers.provider(mode)
    foreign = FORMAT | {"schema": {"$ref": "https://elsewhere.example/schema"}}
    providers.stub.play(Text(GOOD), Finish())
    assert (await record_round(provider, call=formatted(foreign))).text == GOOD
    for text in (PROSE, GOOD):
        providers.stub.play(Text(text), Finish())
    with pytest.raises(ModelFailed, match="can't be compared"):
        await record_round(provider, call=formatted(foreign))
    assert providers.requests == 3


async def test_a_refusal_of_the_form_after_prose_is_no_end(providers: Providers) -> None:
    provider = providers.provider(CHAT)
    providers.stub.play(Text(PROSE), Finish())
    providers.stub.play(Answer(400, b'{"error": {"message": "response_format json_object is not supported"}}'))
    providers.stub.play(Text(GOOD), Finish())
    recorded = await record_round(provider, call=formatted())
    assert (recorded.text, recorded.finish.usage) == (GOOD, COUNTED + COUNTED)
    assert [form for form, _ in asked_forms(providers)] == ["json_schema", "json_object+schema", "json_object"]


def message(index: int, phase: str, text: str) -> Raw:
    item = {"type": "message", "id": f"msg_{index}", "role": "assistant", "phase": phase, "content": []}
    added = {"type": "response.output_item.added", "output_index": index, "item": item}
    delta = {"type": "response.output_text.delta", "output_index": index, "item_id": f"msg_{index}", "delta": text}
    content = [{"type": "output_text", "text": text, "annotations": []}]
    done = {"type": "response.output_item.done", "output_index": index, "item": item | {"content": content}}
    return Raw(sse(added) + sse(delta) + sse(done))


async def test_a_comment_in_front_of_the_document_passes(providers: Providers) -> None:
    provider = providers.provider(RESPONSES)
    created = Raw(sse({"type": "response.created", "response": {"id": "resp_1"}}))
    for _ in range(2):
        providers.stub.play(created, message(0, "commentary", PROSE), message(1, "final_answer", GOOD), Finish())
        recorded = await record_round(provider, call=formatted())
        seen = [event for event in recorded.events if isinstance(event, MessageStarted | TextDelta)]
        assert seen == [
            MessageStarted("commentary"),
            TextDelta(PROSE),
            MessageStarted("final_answer"),
            TextDelta(GOOD),
        ]
    assert asked_forms(providers) == [("json_schema", False)] * 2
