"""Chat completions through to a model's server: what reaches it, and what becomes of how it ends."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from tests.support.chat_client import (
    WEATHER,
    post,
    stream_completion,
    user,
)
from tests.support.checker import check_log
from tests.support.migrated_database import Database
from tests.support.model_stub import (
    Answer,
    Begun,
    Call,
    Calls,
    Cut,
    Finish,
    ModelStub,
    Raw,
    Refusal,
    Text,
    Thought,
    sse,
)
from tests.support.server import Server, text

pytestmark = pytest.mark.any_database

HI = [user("hi")]


@dataclass(frozen=True)
class Upstream:
    server: Server
    stub: ModelStub
    mode: str


@pytest.fixture(scope="module", params=["chat_completions", "codex_responses"])
def upstream(
    request: pytest.FixtureRequest, database: Database, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Upstream]:
    with ModelStub() as stub:
        named = {"HERMES_PROVIDER": "custom", "HERMES_MODEL": "m-1", "HERMES_BASE_URL": stub.url}
        home = tmp_path_factory.mktemp("chat") / "h"
        mode = str(request.param)
        server = database.server(home, Server, **named, HERMES_API_MODE=mode, HERMES_STREAM_RETRIES="0").start()
        yield Upstream(server, stub, mode)
        server.kill()


def test_an_upstream_that_refuses_the_key_is_a_502(upstream: Upstream) -> None:
    for status in (401, 403):
        upstream.stub.play(Answer(status, b'{"error": {"message": "bad key"}}'))
        answer = post(upstream.server, HI)
        assert (answer.status_code, answer.json()["error"]["code"]) == (502, "upstream_auth_failed")


def test_fields_reach_an_upstream_that_knows_them(upstream: Upstream) -> None:
    answer = post(upstream.server, HI, stop="END", seed=7, top_k=3, presence_penalty=1, temperature=0.5, store=True)
    body = upstream.stub.asked[-1].body
    assert body["temperature"] == 0.5
    post(upstream.server, HI, stop=[])
    assert "stop" not in upstream.stub.asked[-1].body
    sent = {name: body.get(name) for name in ("stop", "seed", "top_k", "presence_penalty")}
    if upstream.mode == "chat_completions":
        assert sent == {"stop": ["END"], "seed": 7, "top_k": 3, "presence_penalty": 1}
        assert "x-hermes-ignored" not in answer.headers
    else:
        assert sent == {"stop": None, "seed": None, "top_k": 3, "presence_penalty": None}
        assert answer.headers["x-hermes-ignored"] == "presence_penalty, seed"


def test_a_stop_sequence_cuts_an_upstream_that_does_not_know_it(upstream: Upstream) -> None:
    upstream.stub.play(Text("one tw"), Text("o E"), Text("N"), Text("D three"), Finish())
    answer = post(upstream.server, HI, stop="END").json()
    assert (answer["choices"][0]["message"]["content"], answer["choices"][0]["finish_reason"]) == ("one two ", "stop")
    assert answer["usage"]["completion_tokens"] == 2


def test_reasoning_and_refusals_have_fields_of_their_own(upstream: Upstream) -> None:
    reply = (Thought("hm "), Thought("no"), Refusal("I can't."), Finish())
    upstream.stub.play(*reply)
    message = post(upstream.server, HI).json()["choices"][0]["message"]
    assert (message["reasoning_content"], message["refusal"], message["content"]) == ("hm no", "I can't.", None)
    upstream.stub.play(*reply)
    streamed_completion = stream_completion(upstream.server, HI)
    assert (streamed_completion.joined("reasoning_content"), streamed_completion.joined("refusal")) == (
        "hm no",
        "I can't.",
    )


def sure(token: str, **more: Any) -> dict[str, Any]:
    return {"token": token, "logprob": -0.5, "bytes": None, **more}


def certain_text(mode: str, text: str) -> Raw:
    entries = [sure(word, top_logprobs=[sure("ö", bytes=[1])]) for word in text.split("|")]
    reply = text.replace("|", "")
    if mode == "chat_completions":
        choice = {"index": 0, "delta": {"content": reply}, "logprobs": {"content": entries, "refusal": None}}
        return Raw(sse({"id": "x", "choices": [choice]}))
    return Raw(sse({"type": "response.output_text.delta", "output_index": 0, "delta": reply, "logprobs": entries}))


def test_log_probabilities_come_back_through_both_apis(upstream: Upstream) -> None:
    answer = (certain_text(upstream.mode, "Grüße|, "), certain_text(upstream.mode, "du E|ND| da"), Finish())
    asked: dict[str, Any] = {"logprobs": True, "top_logprobs": 1}
    for _ in range(4):
        upstream.stub.play(*answer)
    whole = post(upstream.server, HI, **asked)
    assert "x-hermes-ignored" not in whole.headers
    body = upstream.stub.asked[-1].body
    included = ["message.output_text.logprobs", "reasoning.encrypted_content"]  # the second always
    in_chat, in_responses = {"logprobs": True}, {"include": included}
    wanted: dict[str, Any] = in_chat if upstream.mode == "chat_completions" else in_responses
    assert {name: body[name] for name in (*wanted, "top_logprobs")} == {**wanted, "top_logprobs": 1}
    completion = ChatCompletion.model_validate_json(whole.content, strict=True)
    assert completion.choices[0].logprobs is not None
    assert whole.json()["choices"][0]["logprobs"].keys() == {"content", "refusal"}
    entries = completion.choices[0].logprobs.content or []
    assert [entry.token for entry in entries] == ["Grüße", ", ", "du E", "ND", " da"]
    assert entries[0].bytes == list("Grüße".encode())
    assert (entries[0].top_logprobs[0].token, entries[0].top_logprobs[0].bytes) == ("ö", [1])
    raw = stream_completion(upstream.server, HI, **asked).chunks
    probabilities = [chunk["choices"][0]["logprobs"] for chunk in raw]
    assert all(one is None or one["refusal"] is None for one in probabilities)
    chunks = [ChatCompletionChunk.model_validate(chunk) for chunk in raw]
    streamed = [chunk.choices[0].logprobs for chunk in chunks if chunk.choices[0].logprobs is not None]
    assert [entry.token for one in streamed for entry in one.content or []] == [entry.token for entry in entries]
    stopped = post(upstream.server, HI, stop="END", **asked).json()["choices"][0]
    assert stopped["message"]["content"] == "Grüße, du "
    assert [entry["token"] for entry in stopped["logprobs"]["content"]] == ["Grüße", ", "]
    response = upstream.server.openai().responses.create(
        model="hermes-agent", input="hi", include=["message.output_text.logprobs"], top_logprobs=1
    )
    part: Any = response.output[0].content[0]  # type: ignore[union-attr, index]
    assert [entry.token for entry in part.logprobs] == [entry.token for entry in entries]
    check_log(upstream.server, response.id)


def test_log_probabilities_that_were_not_requested_are_not_kept(upstream: Upstream) -> None:
    upstream.stub.play(certain_text(upstream.mode, "a"), Finish())
    assert post(upstream.server, HI).json()["choices"][0]["logprobs"] is None
    upstream.stub.play(certain_text(upstream.mode, "a"), Finish())
    alone = post(upstream.server, HI, top_logprobs=3)
    assert alone.headers["x-hermes-ignored"] == "top_logprobs"


def test_a_content_filter_is_named(upstream: Upstream) -> None:
    upstream.stub.play(Text("well"), Finish("content_filter"))
    assert stream_completion(upstream.server, HI).reasons == ["content_filter"]


def test_a_call_cut_off_in_a_stream_is_an_error_and_never_half_a_call(upstream: Upstream) -> None:
    whole = Call("c2", "get_weather", ('{"city":', '"Rome"}'))
    cut = (Begun(Call("c1", "get_weather", ('{"city": "Pa',))), Cut())
    upstream.stub.play(*cut)
    upstream.stub.play(Calls((whole,)), Finish("tool_calls"))
    streamed_completion = stream_completion(upstream.server, HI, tools=[WEATHER])
    assert streamed_completion.error is not None
    assert streamed_completion.error["code"] == "tool_call_dropped"
    assert streamed_completion.reasons == []
    upstream.stub.play(*cut)
    upstream.stub.play(Calls((whole,)), Finish("tool_calls"))
    [made] = post(upstream.server, HI, tools=[WEATHER]).json()["choices"][0]["message"]["tool_calls"]
    assert made["function"]["arguments"] == '{"city":"Rome"}'


def test_an_answer_that_breaks_off_differs_from_no_answer(upstream: Upstream) -> None:
    for _ in range(5):
        upstream.stub.play(Text("piece "), Cut())
    answer = post(upstream.server, HI, store=True)
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "agent_incomplete")
    [kept] = re.findall(r"GET (/v1/responses/resp_\w+)\.", answer.json()["error"]["message"])
    with upstream.server.http() as client:
        body = client.get(kept).json()
        completion = client.get(kept.replace("/responses/resp_", "/chat/completions/chatcmpl-")).json()
    assert (body["status"], body["incomplete_details"]["reason"]) == ("incomplete", "upstream_cut")
    assert text(body) == "piece " * 5
    assert completion["choices"][0]["finish_reason"] == "error"
    assert completion["choices"][0]["message"]["content"] == "piece " * 5
    assert completion["hermes"]["reason"] == "upstream_cut"
