"""What a turn has spent, from the servers that count it in their own way and from those that do not count."""

from dataclasses import replace
from typing import Any

import pytest

from gateway_app.agent.answer_buffer import AnswerBuffer
from gateway_app.agent.events import AnswerStarted, RoundFinished, Usage
from gateway_app.agent.rounds import ask
from responses_app.protocol.token_estimate import tokens_of
from tests.support.model_stub import Answer, Cut, Finish, Raw, Step, Text, Thought, sse
from tests.support.providers import CALL, COUNTED, Providers, failed_round, record_round

CHAT = "chat_completions"
TEXT = "It is 42, and that is all."
DONE = Raw(b"data: [DONE]\n\n")
ESTIMATED = Usage(CALL.input_tokens(), tokens_of(len(TEXT)), is_estimated=True)


def chunk(delta: dict[str, Any] | None = None, reason: str | None = None, **fields: Any) -> Raw:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": reason}]
    return Raw(sse({"id": "chatcmpl-1", "choices": choices, **fields}))


# Each with its source, and what is read of it.
DIALECTS: dict[str, tuple[list[Step], Usage]] = {
    # llama-cpp-python streams none (llama_chat_format.py).
    "none at all": ([chunk({"content": TEXT}), chunk({}, "stop"), DONE], ESTIMATED),
    # vLLM with continuous_usage_stats: in every chunk, and it grows (serving.py).
    "in every chunk": (
        [
            chunk({"content": TEXT}, usage={"prompt_tokens": 9, "completion_tokens": 1}),
            chunk({}, "stop", usage={"prompt_tokens": 9, "completion_tokens": 8}),
            DONE,
        ],
        Usage(9, 8),
    ),
    # Relays of other protocols: the input first, the output last, and a zero for what is not known yet.
    "one by one": (
        [
            chunk({"role": "assistant"}, usage={"prompt_tokens": 9, "completion_tokens": 0}),
            chunk({"content": TEXT}),
            chunk({}, "stop", usage={"prompt_tokens": 0, "completion_tokens": 8}),
            DONE,
        ],
        Usage(9, 8),
    ),
    # Groq (vercel/ai, groq provider).
    "x_groq": (
        [
            chunk({"content": TEXT}, x_groq={"id": "req_1"}),
            chunk({}, "stop", x_groq={"usage": {"prompt_tokens": 9, "completion_tokens": 8}}),
            DONE,
        ],
        Usage(9, 8),
    ),
    # llama-server without include_usage (server-task.cpp): prompt_n leaves out the cached tokens.
    "timings": (
        [chunk({"content": TEXT}), chunk({}, "stop", timings={"cache_n": 6, "prompt_n": 3, "predicted_n": 8}), DONE],
        Usage(9, 8, cached_tokens=6),
    ),
    # xAI counts reasoning beside the completion (vercel/ai, xai provider).
    "reasoning beside the completion": (
        [
            chunk({"content": TEXT}, "stop"),
            chunk(
                usage={
                    "prompt_tokens": 9,
                    "completion_tokens": 8,
                    "total_tokens": 37,
                    "completion_tokens_details": {"reasoning_tokens": 20},
                }
            ),
            DONE,
        ],
        Usage(9, 28, reasoning_tokens=20),
    ),
    # DeepSeek and Mistral (vercel/ai).
    "prompt_cache_hit_tokens": (
        [
            chunk({"content": TEXT}, "stop"),
            chunk(usage={"prompt_tokens": 9, "completion_tokens": 8, "prompt_cache_hit_tokens": 4}),
            DONE,
        ],
        Usage(9, 8, cached_tokens=4),
    ),
    "num_cached_tokens": (
        [
            chunk({"content": TEXT}, "stop"),
            chunk(usage={"prompt_tokens": 9, "completion_tokens": 8, "num_cached_tokens": 4}),
            DONE,
        ],
        Usage(9, 8, cached_tokens=4),
    ),
    # Ollama leaves out the prompt's count when the prompt is cached (ollama#2068).
    "no input": (
        [chunk({"content": TEXT}, "stop"), chunk(usage={"prompt_tokens": 0, "completion_tokens": 8}), DONE],
        Usage(CALL.input_tokens(), 8, is_estimated=True),
    ),
    "no number": (
        [chunk({"content": TEXT}, "stop"), chunk(usage={"prompt_tokens": True, "completion_tokens": 8}), DONE],
        Usage(CALL.input_tokens(), 8, is_estimated=True),
    ),
}


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_usage_is_read_wherever_a_server_has_it(providers: Providers, dialect: str) -> None:
    steps, usage = DIALECTS[dialect]
    providers.stub.play(*steps)
    recorded = await record_round(providers.provider(CHAT))
    assert recorded.text == TEXT
    assert recorded.finish.usage == usage


async def test_usage_is_asked_for_and_estimated_where_that_is_refused(providers: Providers) -> None:
    providers.stub.play(Answer(400, b'{"error": {"message": "Unknown field: stream_options"}}'))
    providers.stub.play(chunk({"content": TEXT}), chunk({}, "stop"), DONE)
    recorded = await record_round(providers.provider(CHAT))
    asked = [request.body.get("stream_options") for request in providers.stub.asked]
    assert asked == [{"include_usage": True}, None]
    assert recorded.finish.usage == ESTIMATED


async def test_a_responses_upstream_that_counts_nothing_is_estimated(providers: Providers) -> None:
    ended: dict[str, Any] = {"id": "resp_1", "status": "completed", "output": [], "usage": None}
    providers.stub.play(Text(TEXT), Raw(sse({"type": "response.completed", "response": ended})))
    assert (await record_round(providers.provider("codex_responses"))).finish.usage == ESTIMATED


async def test_one_estimate_makes_the_whole_round_an_estimate(providers: Providers, mode: str) -> None:
    providers.stub.play(Thought("x" * 8), Text("y" * 12), Cut())
    providers.stub.play(Text("z"), Finish())
    recorded = await record_round(providers.provider(mode))
    assert recorded.finish.usage == Usage(CALL.input_tokens(), 5, is_estimated=True) + COUNTED
    assert recorded.finish.usage.is_estimated


async def test_a_request_that_was_refused_costs_nothing(providers: Providers, mode: str) -> None:
    providers.stub.play(Answer(400, b'{"error": {"message": "No."}}'))
    assert (await failed_round(providers, mode)).usage == Usage()


async def test_each_answer_reports_the_cost_of_its_input_before_its_first_output(
    providers: Providers, mode: str
) -> None:
    providers.stub.play(Answer(503, b"{}"))
    providers.stub.play(Text("a" * 40), Cut())
    providers.stub.play(Text("b"), Finish())
    events = [event async for event in ask([providers.provider(mode)], CALL, 2, AnswerBuffer(), 0.001)]
    starts = [event for event in events if isinstance(event, AnswerStarted)]
    assert isinstance(events[0], AnswerStarted)
    assert len(starts) == 2  # the first request was refused
    assert starts[0] == AnswerStarted(CALL.input_tokens()) != starts[1]
    assert isinstance(events[-1], RoundFinished)


async def test_an_answer_that_a_stop_sequence_ends_is_estimated(providers: Providers) -> None:
    providers.stub.play(Text("One. END Two."), Finish())
    call = replace(CALL, chat_extras={"stop": ["END"]})
    recorded = await record_round(providers.provider(CHAT), call=call)
    assert recorded.finish.usage == Usage(CALL.input_tokens(), tokens_of(len("One. ")), is_estimated=True)
