"""Errors in all the shapes that servers give them, and streams that end with nothing."""

import json
from typing import Any

import pytest

from gateway_app.agent.events import ModelFailed
from gateway_app.agent.model_faults import ContextOverflow, ModelFault
from tests.support.model_stub import Answer, Cut, Finish, Raw, Step, StreamStyle, Text, sse
from tests.support.providers import Providers, failed_round, record_round

DONE = Raw(b"data: [DONE]\n\n")
# Each says "Boom."; the comment names a server that has the shape.
SHAPES: dict[str, Any] = {
    "usual": {"error": {"message": "Boom.", "type": "t", "code": None}},
    "Gemini": [{"error": {"code": 400, "message": "Boom.", "status": "INVALID_ARGUMENT"}}],
    "LM Studio": {"error": "Boom."},
    "SGLang": {"object": "error", "message": "Boom.", "type": "BadRequest", "param": None, "code": 400},
    "Mistral": {"object": "error", "message": {"detail": [{"loc": [], "msg": "Boom."}]}, "type": "t"},
    "xAI": {"code": "Some words about it", "error": "Boom."},
    "FastAPI": {"error": {"detail": [{"msg": "Boom."}]}},
    "typed": {"type": "error", "message": "Boom.", "code": None},
}


@pytest.mark.parametrize("shape", SHAPES)
async def test_the_message_of_an_http_error_is_found_in_every_shape(
    providers: Providers, mode: str, shape: str
) -> None:
    providers.stub.play(Answer(400, json.dumps(SHAPES[shape]).encode()))
    failure = await failed_round(providers, mode)
    assert (failure.message, failure.code) == ("The model's server answered 400: Boom.", "invalid_prompt")
    assert providers.requests == 1


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("end", [(), (DONE,)], ids=["no end", "done"])
async def test_an_error_inside_a_stream_is_found_in_every_shape(
    providers: Providers, mode: str, shape: str, end: tuple[Step, ...]
) -> None:
    providers.stub.play(Raw(b"data: %s\n\n" % json.dumps(SHAPES[shape]).encode()), *end)
    failure = await failed_round(providers, mode)
    assert failure.message == "The model failed: Boom."
    assert providers.requests == 1


@pytest.mark.parametrize("shape", SHAPES)
async def test_an_error_as_json_in_the_place_of_a_stream_is_found_in_every_shape(
    providers: Providers, mode: str, shape: str
) -> None:
    providers.stub.play(Answer(200, json.dumps(SHAPES[shape]).encode()))
    assert (await failed_round(providers, mode)).message == "The model failed: Boom."
    assert providers.requests == 1


@pytest.mark.parametrize(
    "raw",
    [b'error: {"message": "Boom."}\n\n', b'{"error": {"message": "Boom."}}', b'[{"error": {"message": "Boom."}}]\n'],
)
async def test_an_error_without_the_form_of_an_event_is_found(providers: Providers, mode: str, raw: bytes) -> None:
    providers.stub.play(Raw(raw))
    assert (await failed_round(providers, mode)).message == "The model failed: Boom."


async def test_an_error_of_a_choice_is_found(providers: Providers) -> None:
    choice = {"index": 0, "delta": {}, "finish_reason": "error", "error": {"code": 403, "message": "Boom."}}
    providers.stub.play(Raw(sse({"choices": [choice]})))
    failure = await failed_round(providers, "chat_completions")
    assert (failure.message, failure.model_fault) == ("The model failed: Boom.", ModelFault.AUTHENTICATION)


async def test_an_overflow_has_its_numbers(providers: Providers, mode: str) -> None:
    error = {"code": 400, "message": "Too long.", "type": "exceed_context_size_error", "n_prompt_tokens": 9, "n_ctx": 4}
    providers.stub.play(Answer(400, json.dumps({"error": error}).encode()))
    failure = await failed_round(providers, mode)
    assert (failure.code, failure.overflow) == ("context_length_exceeded", ContextOverflow(9, 4))


# -- streams that end with nothing ---------------------------------------------------------
def chat_chunk(**choice: Any) -> Raw:
    return Raw(sse({"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": None} | choice]}))


EMPTY: dict[str, tuple[Step, ...]] = {
    "nothing": (StreamStyle(has_opening=False), DONE),
    "an empty delta": (chat_chunk(delta={"role": "assistant", "content": ""}),),
    "an empty delta and done": (chat_chunk(delta={"content": ""}), DONE),
    "a finish without output": (chat_chunk(finish_reason="stop"), DONE),
    "an error as its finish": (chat_chunk(finish_reason="error"), DONE),
    "no resources": (chat_chunk(finish_reason="insufficient_system_resource"), DONE),
    "aborted": (chat_chunk(finish_reason="abort"), DONE),
}


@pytest.mark.parametrize("end", EMPTY)
async def test_a_stream_without_output_is_a_failure_and_asked_again(providers: Providers, end: str) -> None:
    providers.stub.play(*EMPTY[end])
    recorded = await record_round(providers.provider("chat_completions"))
    assert (recorded.text, providers.requests) == ("Hello wörld 🎉", 2)
    for _ in range(3):
        providers.stub.play(*EMPTY[end])
    with pytest.raises(ModelFailed):
        await record_round(providers.provider("chat_completions"))


async def test_a_response_without_output_is_a_failure_and_asked_again(providers: Providers) -> None:
    response: dict[str, Any] = {"id": "r", "status": "completed", "output": [], "usage": None}
    providers.stub.play(StreamStyle(), Raw(sse({"type": "response.completed", "response": response})))
    recorded = await record_round(providers.provider("codex_responses"))
    assert (recorded.text, providers.requests) == ("Hello wörld 🎉", 2)


async def test_a_model_that_has_nothing_to_say_is_no_failure(providers: Providers, mode: str) -> None:
    providers.stub.play(StreamStyle(), Finish())
    recorded = await record_round(providers.provider(mode))
    assert (recorded.text, recorded.finish.reason, providers.requests) == ("", "stop", 1)


@pytest.mark.parametrize("reason", ["insufficient_system_resource", "error", "abort"])
async def test_a_text_that_ends_with_an_error_goes_on(providers: Providers, reason: str) -> None:
    providers.stub.play(Text("so "), chat_chunk(finish_reason=reason), DONE)
    recorded = await record_round(providers.provider("chat_completions"))
    assert (recorded.text, recorded.cuts) == ("so Hello wörld 🎉", 1)


@pytest.mark.parametrize("reason", ["length", "model_length", "max_tokens"])
async def test_a_full_context_ends_at_the_length(providers: Providers, reason: str) -> None:
    providers.stub.play(Text("so "), chat_chunk(finish_reason=reason), DONE)
    recorded = await record_round(providers.provider("chat_completions"))
    assert (recorded.text, recorded.finish.reason, providers.requests) == ("so ", "length", 1)


async def test_an_end_without_a_reason_is_a_cut_even_if_the_stream_is_done(providers: Providers) -> None:
    providers.stub.play(Text("so "), DONE)
    providers.stub.play(Text("so "), Cut())
    recorded = await record_round(providers.provider("chat_completions"))
    assert (recorded.text, recorded.cuts) == ("so so Hello wörld 🎉", 2)
