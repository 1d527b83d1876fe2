"""The providers openai and custom: what a call becomes on the wire, and what the wire becomes again."""

import json
import threading
from contextlib import aclosing
from typing import Any

import pytest

from gateway_app.agent.events import (
    CallArguments,
    CallFinished,
    CallStarted,
    ModelEvent,
    ModelFailed,
    ModelFinished,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    Usage,
)
from gateway_app.agent.model_call import ModelCall
from gateway_app.providers.openai.provider import OpenAIProvider
from responses_app.protocol.items import ContentPart, Item
from tests.support.model_stub import (
    Answer,
    Call,
    Calls,
    Cut,
    Finish,
    Gate,
    Raw,
    Refusal,
    StreamStyle,
    Text,
    Thought,
    sse,
)
from tests.support.providers import KEY, Providers
from tests.support.server import eventually

COUNTED = Usage(11, 7, cached_tokens=3, cache_write_tokens=2, reasoning_tokens=5)
ASKED: list[Item] = [{"type": "message", "role": "user", "content": "Hi"}]
CALL = ModelCall(model="hermes-agent", items=ASKED)


async def ask(provider: OpenAIProvider, call: ModelCall = CALL) -> list[ModelEvent]:
    return [event async for event in provider.stream(call)]


async def fail(provider: OpenAIProvider, call: ModelCall = CALL) -> ModelFailed:
    with pytest.raises(ModelFailed) as failed:
        await ask(provider, call)
    return failed.value


async def test_text_reasoning_and_usage_arrive(providers: Providers, mode: str) -> None:
    providers.stub.play(Thought("Hm. "), Text("Grüße "), Text("🎉"), Finish())
    found = await ask(providers.provider(mode))
    # The stub sends raw reasoning as chat, and summaries as Responses.
    thought = ReasoningDelta("Hm. ", is_summary=mode == "codex_responses")
    assert found == [thought, TextDelta("Grüße "), TextDelta("🎉"), ModelFinished("stop", COUNTED)]


async def test_a_refusal_arrives(providers: Providers, mode: str) -> None:
    providers.stub.play(Refusal("I can't."), Finish())
    assert (await ask(providers.provider(mode)))[0] == RefusalDelta("I can't.")


async def test_parallel_calls_keep_their_pieces_apart(providers: Providers, mode: str) -> None:
    first, second = Call("call_a", "add", ('{"x"', ":1}")), Call("call_b", "look", ('{"y":', '"ü"', "}"))
    providers.stub.play(Text("Well. "), Calls((first, second)), Finish("tool_calls"))
    found = await ask(providers.provider(mode))
    assert found[:3] == [TextDelta("Well. "), CallStarted("call_a", "add"), CallStarted("call_b", "look")]
    for call in (first, second):
        deltas = [event.delta for event in found if isinstance(event, CallArguments) and event.call_id == call.call_id]
        assert deltas == list(call.pieces)
        assert found.count(CallFinished(call.call_id)) == 1
    assert found[-1] == ModelFinished("tool_calls", COUNTED)


async def test_a_call_id_that_was_used_before_is_replaced(providers: Providers, mode: str) -> None:
    used: list[Item] = [{"type": "function_call", "call_id": "call_0", "name": "add", "arguments": "{}"}]
    outputs: list[Item] = [{"type": "function_call_output", "call_id": "call_0", "output": "1"}]
    providers.stub.play(Calls((Call("call_0", "add", ()), Call("", "add", ()))), Finish("tool_calls"))
    found = await ask(providers.provider(mode), ModelCall(model="x", items=[*ASKED, *used, *outputs]))
    ids = [event.call_id for event in found if isinstance(event, CallStarted)]
    assert len({*ids, "call_0"}) == 3
    assert [event.delta for event in found if isinstance(event, CallArguments)] == ["{}", "{}"]


@pytest.mark.parametrize("reason", ["length", "content_filter"])
async def test_an_answer_that_is_cut_short_says_why(providers: Providers, mode: str, reason: str) -> None:
    providers.stub.play(Text("so f"), Finish(reason))
    assert (await ask(providers.provider(mode)))[-1] == ModelFinished(reason, COUNTED)


async def test_a_stream_without_an_end_is_a_failure(providers: Providers, mode: str) -> None:
    for script in ((Text("so f"),), (Text("so f"), Cut()), (Text("so f"), Raw(b"data: {\n\n"))):
        providers.stub.play(*script)
        assert (await fail(providers.provider(mode))).message.startswith("The model's stream was cut")


async def test_an_error_inside_the_stream_is_a_failure(providers: Providers, mode: str) -> None:
    error = {"message": f"too many for {KEY}", "code": "rate_limit_exceeded"}
    for body in ({"error": error}, {"type": "error", **error}):
        providers.stub.play(Text("so f"), Raw(sse(body)))
        failure = await fail(providers.provider(mode))
        assert failure.message == "The model failed: too many for [redacted]"
        assert failure.code == "rate_limit_exceeded"


async def test_every_secret_of_an_upstream_is_hidden(providers: Providers, mode: str) -> None:
    secrets = ("in-a-header", "in the/query", "in%20the%2Fquery", "in+the%2Fquery", "ann-the-user", "p@ss", "p%40ss")
    address = providers.stub.url.replace("://", "://ann-the-user:p%40ss@")
    options = {"extra_headers": {"X-Gate": "in-a-header"}, "query": {"sig": "in the/query", "v": 1}}
    providers.stub.play(Answer(400, json.dumps({"error": {"message": ", ".join(secrets)}}).encode()))
    failure = await fail(providers.provider(mode, base_url=address, options=options))
    assert failure.message.endswith(": " + ", ".join(["[redacted]"] * len(secrets)))


async def test_a_failed_response_is_a_failure(providers: Providers) -> None:
    failed = {"error": {"code": "odd_code", "message": "It broke."}, "status": "failed"}
    providers.stub.play(Raw(sse({"type": "response.failed", "response": failed})))
    failure = await fail(providers.provider("codex_responses"))
    assert (failure.code, failure.message) == ("server_error", "The model failed: It broke.")


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, "invalid_prompt"),
        (429, "rate_limit_exceeded"),
        *((other, "server_error") for other in (307, 401, 403, 500)),
    ],
)
async def test_an_http_error_keeps_the_message_and_hides_the_key(
    providers: Providers, mode: str, status: int, code: str
) -> None:
    body = f'{{"error": {{"message": "No: {KEY}, Authorization: Bearer {KEY}"}}}}'
    providers.stub.play(Answer(status, body.encode()))
    failure = await fail(providers.provider(mode))
    assert failure.code == code
    assert str(status) in failure.message
    assert "No: [redacted], Authorization: [redacted]" in failure.message
    assert KEY not in failure.message
    assert failure.message.startswith("upstream_auth_failed") == (status in (401, 403))
    assert len(providers.stub.asked) == 1


async def test_a_server_that_does_not_stream_is_refused(providers: Providers, mode: str) -> None:
    providers.stub.play(Answer(200, b'{"error": "out of memory"}'))
    assert "out of memory" in (await fail(providers.provider(mode))).message
    providers.stub.play(Answer(200, b"{}"))
    assert "stream of events" in (await fail(providers.provider(mode))).message


async def test_a_refused_connection_is_a_failure(providers: Providers, mode: str) -> None:
    failure = await fail(providers.provider(mode, base_url="http://127.0.0.1:9/v1"))
    assert failure.message.startswith("The model's server cannot be reached")


async def test_silence_ends_by_the_read_timeout_and_comments_by_the_stale_timeout(
    providers: Providers, mode: str
) -> None:
    never = threading.Event()
    providers.stub.play(Text("a"), Gate(never))
    assert "no data for 0.2 s" in (await fail(providers.provider(mode, read_secs=0.2))).message
    providers.stub.play(StreamStyle(has_opening=False), Gate(never))
    assert "no event for 0.2 s" in (await fail(providers.provider(mode, read_secs=0.1, stale_secs=0.2))).message
    providers.stub.play(Raw(b": still here\n\n"), Gate(never))
    assert "no event for 0.2 s" in (await fail(providers.provider(mode, stale_secs=0.2))).message
    eventually(lambda: all(asked.hung_up.is_set() for asked in providers.stub.asked), 2, "the hang-ups")


async def test_closing_the_stream_hangs_up_and_the_end_of_one_keeps_the_connection(
    providers: Providers, mode: str
) -> None:
    provider = providers.provider(mode)
    for _ in range(3):
        await ask(provider)
    assert [asked.connection for asked in providers.stub.asked] == [1, 1, 1]
    providers.stub.play(Text("a"), Gate(threading.Event()))
    async with aclosing(provider.stream(CALL)) as events:
        assert await anext(events) == TextDelta("a")
    eventually(providers.stub.asked[-1].hung_up.is_set, 2, "the hang-up")
    await ask(provider)


async def test_no_key_means_no_authorization(providers: Providers, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, "for-openai-only")
    await ask(providers.provider(mode, api_key=""))
    await ask(providers.provider(mode))
    without, with_key = providers.stub.asked
    assert "authorization" not in without.headers
    assert with_key.headers["authorization"] == f"Bearer {KEY}"
    assert "for-openai-only" not in str(providers.stub.asked)


# -- what is sent -----------------------------------------------------------------------
IMAGE: ContentPart = {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "low"}
TEXT_ITEM: Item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Let me look."}]}
TALK: list[Item] = [
    {"type": "message", "role": "developer", "content": "Be kind."},
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "What is it?"}, IMAGE]},
    {"type": "reasoning", "id": "rs_1", "summary": []},
    {**TEXT_ITEM, "id": "msg_1", "status": "completed"},
    {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "look", "arguments": "{}", "status": "completed"},
    {"type": "function_call", "call_id": "c2", "name": "look", "arguments": '{"again":1}'},
    {"type": "function_call_output", "call_id": "c1", "output": "a cat"},
    {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "two cats"}]},
    {"type": "function_call", "call_id": "c3", "name": "look", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c3", "output": "no cat"},
]
LOOK = {"type": "function", "name": "look", "description": None, "parameters": {"type": "object"}, "strict": None}
SCHEMA = {"type": "json_schema", "name": "cat", "schema": {"type": "object"}, "strict": True}
SAMPLING = {"temperature": 0.5, "top_p": 0.9, "parallel_tool_calls": False, "service_tier": "flex", "top_logprobs": 2}
NAMES = {"prompt_cache_key": "cache", "safety_identifier": "safe", "user": "ann"}
FULL = ModelCall(
    model="hermes-agent",
    items=TALK,
    instructions="You see.",
    client_tools=(LOOK, {"type": "function", "name": "hide"}),
    tool_choice={"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "look"}]},
    max_output_tokens=99,
    parameters=SAMPLING
    | NAMES
    | {"text": {"format": SCHEMA, "verbosity": "low"}, "reasoning": {"effort": "high"}, "metadata": {"a": "b"}},
)


async def sent(providers: Providers, mode: str, call: ModelCall, name: str = "custom") -> dict[str, Any]:
    providers.stub.play(Text("{}"), Finish())  # a document, where one is asked for
    await ask(providers.provider(mode, name), call)
    return providers.stub.asked[-1].body


@pytest.mark.parametrize("name", ["openai", "custom"])
async def test_a_full_call_as_chat_completions(providers: Providers, name: str) -> None:
    body = await sent(providers, "chat_completions", FULL, name)
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA==", "detail": "low"}}
    call = {"type": "function", "function": {"name": "look", "arguments": "{}"}}
    again = {"id": "c2", "type": "function", "function": {"name": "look", "arguments": '{"again":1}'}}
    assert body.pop("messages") == [
        {"role": "system", "content": "You see.\n\nBe kind."},
        {"role": "user", "content": [{"type": "text", "text": "What is it?"}, image]},
        {"role": "assistant", "content": "Let me look.", "tool_calls": [{"id": "c1", **call}, again]},
        {"role": "tool", "tool_call_id": "c1", "content": "a cat"},
        {"role": "tool", "tool_call_id": "c2", "content": "two cats"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c3", **call}]},
        {"role": "tool", "tool_call_id": "c3", "content": "no cat"},
    ]
    assert body.pop("max_completion_tokens" if name == "openai" else "max_tokens") == 99
    schema = {"name": "cat", "schema": {"type": "object"}, "strict": True}
    assert body == SAMPLING | NAMES | {
        "model": "m-1",
        "stream": True,
        "stream_options": {"include_usage": True},
        "tools": [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}],
        "tool_choice": "required",
        "response_format": {"type": "json_schema", "json_schema": schema},
        "verbosity": "low",
        "reasoning_effort": "high",
        "logprobs": True,
    }


@pytest.mark.parametrize("name", ["openai", "custom"])
async def test_a_full_call_as_responses(providers: Providers, name: str) -> None:
    body = await sent(providers, "codex_responses", FULL, name)
    looked = [{k: v for k, v in item.items() if k not in ("id", "status")} for item in TALK[4:]]
    looked[3]["output"] = "two cats"  # a text alone is sent as a string
    talk = TALK[:2] if name == "openai" else TALK[1:2]
    assert body.pop("input") == [*talk, TEXT_ITEM, *looked]
    assert body.pop("tools") == [{**LOOK, "strict": False}, {"type": "function", "name": "hide", "strict": False}]
    assert body == FULL.parameters | {
        "model": "m-1",
        "stream": True,
        "store": False,
        "instructions": "You see." if name == "openai" else "You see.\n\nBe kind.",
        "tool_choice": FULL.tool_choice,
        "max_output_tokens": 99,
        "include": ["reasoning.encrypted_content"],
    }


async def test_only_what_is_set_is_sent(providers: Providers) -> None:
    asked = ModelCall(model="x", items=ASKED, tool_choice="none", parameters={"parallel_tool_calls": True})
    chat = await sent(providers, "chat_completions", asked)
    assert sorted(chat) == ["messages", "model", "stream", "stream_options"]
    responses = await sent(providers, "codex_responses", asked)
    assert sorted(responses) == ["include", "input", "model", "store", "stream"]


async def test_one_function_can_be_asked_for(providers: Providers, mode: str) -> None:
    choice = {"type": "function", "name": "look"}
    body = await sent(providers, mode, ModelCall(model="x", items=ASKED, client_tools=(LOOK,), tool_choice=choice))
    chat = {"type": "function", "function": {"name": "look"}}
    assert body["tool_choice"] == (chat if mode == "chat_completions" else choice)
