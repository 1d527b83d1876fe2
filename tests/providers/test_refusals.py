"""A field that an upstream refuses by name is left out; of every later request, if it is unknown there."""

import json
from dataclasses import replace
from typing import Any

import pytest

from gateway_app.agent.events import ModelFailed
from tests.support.model_stub import Answer
from tests.support.providers import CALL, Providers, record_round

SAMPLED = replace(
    CALL,
    max_output_tokens=50,
    parameters={"temperature": 0.5, "user": "ann", "reasoning": {"effort": "high"}},
    chat_extras={"top_k": 3, "presence_penalty": 1, "stop": ["END"]},
)


def refusal(body: Any, status: int = 400) -> Answer:
    return Answer(status, json.dumps(body).encode())


def error(message: str, **fields: Any) -> dict[str, Any]:
    return {"error": {"message": message, **fields}}


VALIDATED = {"type": "extra_forbidden", "loc": ["body", "user"], "msg": "Extra inputs are not permitted"}


@pytest.mark.parametrize(
    ("answer", "field"),
    [
        # OpenAI
        (refusal(error("Unknown parameter: 'stop'.", code="unknown_parameter", param="stop")), "stop"),
        (refusal(error("Unrecognized request argument supplied: user")), "user"),
        (
            refusal(error("'temperature' is not supported with this model.", param="temperature")),
            "temperature",
        ),
        # Gemini
        (refusal(error('Invalid JSON payload received. Unknown name "user": Cannot find field.')), "user"),
        # Groq
        (refusal(error("property 'user' is unsupported")), "user"),
        # xAI
        (refusal(error("Model grok-4 does not support parameter presencePenalty.")), "presence_penalty"),
        # Ollama
        (refusal(error('"llama3.2" does not support thinking')), "reasoning_effort"),
        # Mistral, and every server built on pydantic
        (refusal({"detail": [VALIDATED]}, 422), "user"),
        (refusal({"object": "error", "message": {"detail": [VALIDATED]}}, 422), "user"),
    ],
)
async def test_a_refused_field_is_left_out_and_reported(providers: Providers, answer: Answer, field: str) -> None:
    provider = providers.provider("chat_completions")
    providers.stub.play(answer)
    first = await record_round(provider, call=SAMPLED, retries=0)
    later = await record_round(provider, call=SAMPLED, retries=0)
    with_it, without_it, remembered = [asked.body for asked in providers.stub.asked]
    assert field in with_it
    assert without_it == remembered == {name: value for name, value in with_it.items() if name != field}
    assert first.deviations == later.deviations == [f"no {field}"]
    assert first.text == "Hello wörld 🎉"


@pytest.mark.parametrize(
    ("message", "field"),
    [
        ("Unknown parameter: 'top_k'.", "top_k"),  # which only the client knows
        ("presence_penalty is not supported with tools", "presence_penalty"),  # another request may have none
        ("Unknown fields: 'stop', 'user'", "stop"),  # of two, either may be the reason
    ],
)
async def test_other_refused_fields_are_left_out_of_one_request(providers: Providers, message: str, field: str) -> None:
    provider = providers.provider("chat_completions")
    providers.stub.play(refusal(error(message)))
    recorded = await record_round(provider, call=SAMPLED, retries=0)
    later = await record_round(provider, call=SAMPLED, retries=0)
    assert (recorded.deviations, later.deviations) == ([f"no {field}"], [])
    assert [field in asked.body for asked in providers.stub.asked] == [True, False, True]


async def test_a_field_that_was_not_the_reason_is_sent_again(providers: Providers) -> None:
    provider = providers.provider("chat_completions")
    for _ in range(2):
        providers.stub.play(refusal(error("No such image: 'unsupported parameter: user'")))
    with pytest.raises(ModelFailed):
        await record_round(provider, call=SAMPLED, retries=0)
    assert (await record_round(provider, call=SAMPLED, retries=0)).deviations == []


@pytest.mark.parametrize(
    "body",
    [
        error(
            "Unsupported value: 'reasoning_effort' does not support 'high'. Supported values are: 'low'.",
            param="reasoning_effort",
            code="unsupported_value",
        ),
        error("temperature does not support 0.5"),
        error("Unsupported user: must be one of 'bob'", param="user"),
    ],
)
async def test_a_refused_value_is_an_error_for_the_client_that_sent_it(
    providers: Providers, body: dict[str, Any]
) -> None:
    provider = providers.provider("chat_completions")
    providers.stub.play(refusal(body))
    with pytest.raises(ModelFailed, match="answered 400"):
        await record_round(provider, call=SAMPLED, retries=0)
    assert (await record_round(provider, call=SAMPLED, retries=0)).deviations == []
    assert len(providers.stub.asked) == 2


async def test_a_refused_value_of_an_option_is_left_out_of_one_request(providers: Providers) -> None:
    provider = providers.provider("chat_completions", options={"temperature": 0.5})
    providers.stub.play(refusal(error("Unsupported value: 'temperature' does not support 0.5")))
    recorded = await record_round(provider, retries=0)
    await record_round(provider, retries=0)
    assert recorded.deviations == ["no temperature"]
    assert [asked.body.get("temperature") for asked in providers.stub.asked] == [0.5, None, 0.5]


async def test_a_field_of_the_operator_is_never_left_out(providers: Providers) -> None:
    options = {"extra_body": {"safe_prompt": True, "user": "site"}}
    provider = providers.provider("chat_completions", options=options)
    providers.stub.play(refusal(error("Unknown parameter: 'safe_prompt'", param="safe_prompt")))
    with pytest.raises(ModelFailed, match="safe_prompt"):
        await record_round(provider, call=SAMPLED, retries=0)
    assert len(providers.stub.asked) == 1


@pytest.mark.parametrize("words", ["'temperature' 'user' 'stop'", "reasoning", "encrypted_content"])
async def test_the_name_of_a_clients_field_has_no_effect_on_others(providers: Providers, words: str) -> None:
    provider = providers.provider("chat_completions")
    name = f"x {words}"
    strange = replace(SAMPLED, chat_extras={**SAMPLED.chat_extras, name: 1})
    providers.stub.play(refusal(error(f"Unrecognized request argument supplied: {name}")))
    recorded = await record_round(provider, call=strange, retries=0)
    with_it, without_it = [asked.body for asked in providers.stub.asked]
    assert recorded.deviations == [f"no {name}"]
    assert without_it == {field: value for field, value in with_it.items() if field != name}
    assert (await record_round(provider, call=SAMPLED, retries=0)).deviations == []


async def test_several_fields_go_one_after_another(providers: Providers) -> None:
    for name in ("top_k", "user"):
        providers.stub.play(refusal(error(f"Unknown field: {name}")))
    recorded = await record_round(providers.provider("chat_completions"), call=SAMPLED, retries=0)
    assert recorded.deviations == ["no top_k", "no user"]
    assert len(providers.stub.asked) == 3


async def test_the_limit_goes_by_its_other_name(providers: Providers) -> None:
    message = "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."
    providers.stub.play(refusal(error(message, param="max_tokens", code="unsupported_parameter")))
    recorded = await record_round(providers.provider("chat_completions"), call=SAMPLED, retries=0)
    assert "max_tokens" not in providers.stub.asked[1].body
    assert providers.stub.asked[1].body["max_completion_tokens"] == 50
    assert recorded.deviations == ["max_completion_tokens instead of max_tokens"]


async def test_a_limit_that_goes_by_no_name_fails_the_turn(providers: Providers) -> None:
    for name in ("max_tokens", "max_completion_tokens"):
        providers.stub.play(refusal(error(f"Unknown parameter: '{name}'")))
    with pytest.raises(ModelFailed, match="max_completion_tokens"):
        await record_round(providers.provider("chat_completions"), call=SAMPLED, retries=0)
    assert len(providers.stub.asked) == 2


@pytest.mark.parametrize(
    "body",
    [
        error("Invalid 'temperature': must be at most 1."),  # a bad value is the client's to mend
        error("Unknown parameter: 'messages'"),
        error("This user is not supported."),
        error("tools is not supported by this model", param="tools"),
        error("The maximum context length is 10; top_k is not supported", code="context_length_exceeded"),
    ],
)
async def test_any_other_refusal_stands(providers: Providers, body: dict[str, Any]) -> None:
    providers.stub.play(refusal(body))
    with pytest.raises(ModelFailed):
        await record_round(providers.provider("chat_completions"), call=SAMPLED, retries=0)
    assert len(providers.stub.asked) == 1


async def test_an_upstream_of_responses_is_asked_again_too(providers: Providers) -> None:
    providers.stub.play(refusal(error("Unknown parameter: 'top_k'.", param="top_k")))
    call = replace(CALL, extras={"top_k": 3, "min_p": 0.1})
    recorded = await record_round(providers.provider("codex_responses"), call=call, retries=0)
    first, second = [asked.body for asked in providers.stub.asked]
    assert (first["top_k"], first["min_p"], second["min_p"]) == (3, 0.1, 0.1)
    assert "top_k" not in second
    assert recorded.deviations == ["no top_k"]
