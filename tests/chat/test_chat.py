"""Chat completions: the same answers as over Responses, in the other protocol's form."""

from typing import Any

import openai
import pytest

from tests.support.chat_client import (
    PATH,
    complete,
    post,
    response_id,
    scripted,
    stream_completion,
    user,
)
from tests.support.checker import check_log
from tests.support.server import Server

pytestmark = pytest.mark.any_database

PROMPTS = ["hello there", "think and calculate 6*7", "write 50 words"]


def ask(server: Server, messages: Any, **fields: Any) -> Any:
    return server.openai().chat.completions.create(model="hermes-agent", messages=messages, **fields)


@pytest.mark.parametrize("prompt", PROMPTS)
def test_the_same_prompt_gives_the_same_over_both_apis_streamed_or_not(server: Server, prompt: str) -> None:
    over_responses = server.openai().responses.create(model="hermes-agent", input=prompt)
    plain = ask(server, [user(prompt)])
    completion = stream_completion(server, [user(prompt)], stream_options={"include_usage": True})
    assert plain.choices[0].message.content == over_responses.output_text == completion.joined("content")
    assert plain.choices[0].finish_reason == "stop"
    assert completion.reasons == ["stop"]
    spent = over_responses.usage
    assert spent is not None
    counted = (spent.input_tokens, spent.output_tokens, spent.total_tokens)
    assert (plain.usage.prompt_tokens, plain.usage.completion_tokens, plain.usage.total_tokens) == counted
    assert completion.chunks[-1]["usage"] == plain.usage.to_dict()
    thought = plain.choices[0].message.to_dict().get("reasoning_content", "")
    assert completion.joined("reasoning_content") == thought
    assert bool(thought) == ("think" in prompt)
    check_log(server, response_id(plain.id))


def test_the_chunks_are_as_clients_expect_them(server: Server) -> None:
    completion = stream_completion(server, [user("hello")], model="hermes-agent")
    first, last = completion.chunks[0], completion.chunks[-1]
    assert first["choices"][0]["delta"] == {"role": "assistant"}
    assert (last["choices"][0]["delta"], last["choices"][0]["finish_reason"]) == ({}, "stop")
    assert {(c["id"], c["object"], c["model"]) for c in completion.chunks} == {
        (first["id"], "chat.completion.chunk", "hermes-agent")
    }
    assert all("usage" not in chunk for chunk in completion.chunks)
    assert completion.headers["x-hermes-session-id"]
    assert completion.headers["x-request-id"]


def test_usage_comes_in_a_last_chunk_without_choices_when_asked_for(server: Server) -> None:
    completion = stream_completion(server, [user("hello")], stream_options={"include_usage": True})
    *others, last = completion.chunks
    assert all(chunk["usage"] is None for chunk in others)
    assert last["choices"] == []
    assert last["usage"]["total_tokens"] == last["usage"]["prompt_tokens"] + last["usage"]["completion_tokens"]
    plain = post(server, [user("hello")], stream_options={"include_usage": True})
    assert plain.headers["x-hermes-ignored"] == "stream_options"


def test_the_sdks_stream_helper_accepts_it(server: Server) -> None:
    with server.openai().chat.completions.stream(model="hermes-agent", messages=[user("calculate 2+3")]) as stream:  # type: ignore[list-item]
        kinds = {event.type for event in stream}
        final = stream.get_final_completion()
    assert kinds >= {"chunk", "content.delta", "content.done"}
    assert final.choices[0].message.content == "Let me see. The result is 5."


def test_every_role_and_image_reaches_the_model(server: Server) -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}}
    messages = [
        {"role": "system", "content": "S"},
        {"role": "developer", "content": [{"type": "text", "text": "D"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "A"}]},
        user([{"type": "text", "text": "chat-roles-marker"}, picture]),
    ]
    made = complete(server, messages)
    assert server.model_calls("chat-roles-marker")[0]["texts"] == ["S", "D", "A", "chat-roles-marker"]
    items = list(server.openai().responses.input_items.list(response_id(made["id"]), order="asc"))
    shown: Any = items[-1].to_dict()["content"]
    assert shown[1] == {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "low"}


def test_a_limit_ends_with_length_and_says_so(server: Server) -> None:
    limits: list[dict[str, Any]] = [{"max_tokens": 5}, {"max_completion_tokens": 5}]
    for limit in limits:
        answer = post(server, [user("write 50 words")], **limit)
        made = answer.json()
        assert made["choices"][0]["finish_reason"] == "length"
        assert len(made["choices"][0]["message"]["content"].split()) == 5
        assert made["hermes"]["error_code"] == "output_truncated"
        assert answer.headers["x-hermes-completed"] == "false"
        completion = stream_completion(server, [user("write 50 words")], **limit)
        assert completion.reasons == ["length"]
        assert completion.joined("content") == made["choices"][0]["message"]["content"]


def test_an_answer_without_a_word_can_be_sent_back(server: Server) -> None:
    asked = scripted({"think": "nothing to say"})
    silent = complete(server, asked)["choices"][0]["message"]
    assert (silent["content"], silent["reasoning_content"]) == ("", "nothing to say")
    assert complete(server, [*asked, silent, user("And now?")])["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize(("stop", "kept"), [("bridge", "A river keeps its course when the "), (["zzz", "its c"], None)])
def test_stop_sequences_cut_the_text(server: Server, stop: Any, kept: str | None) -> None:
    kept = kept or "A river keeps "
    made = complete(server, [user("write 50 words")], stop=stop)
    assert (made["choices"][0]["message"]["content"], made["choices"][0]["finish_reason"]) == (kept, "stop")
    completion = stream_completion(server, [user("write 50 words")], stop=stop)
    assert (completion.joined("content"), completion.reasons) == (kept, ["stop"])


def test_text_that_only_begins_like_a_stop_sequence_is_kept(server: Server) -> None:
    made = complete(server, scripted({"say": "one two thr"}), stop=["three", "r!"])
    assert made["choices"][0]["message"]["content"] == "one two thr"


def test_structured_output_and_effort(server: Server) -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    wanted = {"type": "json_schema", "json_schema": {"name": "place", "schema": schema, "strict": True}}
    made = complete(server, [user("where?")], response_format=wanted, reasoning_effort="low", verbosity="low")
    assert made["choices"][0]["message"]["content"] == '{"city":"sample"}'
    body = server.body(response_id(made["id"]))
    assert body["reasoning"]["effort"] == "low"
    assert body["text"]["format"]["name"] == "place"
    assert body["text"]["verbosity"] == "low"


def test_what_nothing_acts_on_is_named(server: Server) -> None:
    answer = post(server, [{**user("hi"), "name": "ann"}], seed=7, top_k=3, logprobs=True, n=1, modalities=["text"])
    assert answer.headers["x-hermes-ignored"] == "logprobs, seed, top_k, messages[0].name"


def test_stored_completions_can_be_read_again_and_listed(server: Server) -> None:
    client = server.openai()
    made = [ask(server, [user(f"kept {n}")], store=True, metadata={"suite": "kept", "n": str(n)}) for n in range(3)]
    found = client.chat.completions.retrieve(made[0].id)
    assert found.choices[0].message.content == made[0].choices[0].message.content
    assert found.to_dict()["metadata"] == {"suite": "kept", "n": "0"}
    listed = [one.id for one in client.chat.completions.list(metadata={"suite": "kept"}, limit=1)]
    assert listed == [one.id for one in made]
    assert [one.id for one in client.chat.completions.list(metadata={"suite": "kept", "n": "1"})] == [made[1].id]
    newest = client.chat.completions.list(order="desc", limit=2)
    assert [one.id for one in newest.data] == [made[2].id, made[1].id]
    client.chat.completions.delete(made[0].id)
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.retrieve(made[0].id)


@pytest.mark.parametrize("cursor", ["after", "before"])
@pytest.mark.parametrize("unknown", ["zzz", "chatcmpl-zzz", "é"])
def test_an_unknown_cursor_is_named(server: Server, cursor: str, unknown: str) -> None:
    with server.http() as client:
        refused = client.get("/v1/chat/completions", params={cursor: unknown})
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, cursor)


def test_odd_filters_find_nothing_or_are_named(server: Server) -> None:
    with server.http() as client:
        for name in ("metadata[]", "metadata[a.b]", "metadata[a'b\"]", "metadata[$[0]]", "metadata[0]"):
            found = client.get(PATH, params={name: "é' OR 1"})
            assert (found.status_code, found.json()["data"]) == (200, []), name
        for name, value, param in (("metadata[a]", "\0", "metadata[a]"), ("metadata[\0]", "a", "metadata")):
            refused = client.get(PATH, params={name: value})
            assert (refused.status_code, refused.json()["error"]["param"]) == (400, param)


@pytest.mark.parametrize("store", [None, False])
def test_what_was_not_to_be_kept_is_not_found(server: Server, store: bool | None) -> None:
    made = complete(server, [user("not kept")], store=store)
    with server.http() as client:
        answer = client.get(f"{PATH}/{made['id']}")
        listed = client.get(PATH, params={"limit": 100, "order": "desc"}).json()
        recorded = client.get(f"/v1/responses/{response_id(made['id'])}").status_code
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "completion_not_found")
    assert made["id"] not in [one["id"] for one in listed["data"]]
    assert recorded == (200 if store is None else 404)


def test_a_completion_of_another_owner_is_not_found(server: Server, other_tenant: str) -> None:
    made = ask(server, [user("mine")], store=True)
    with server.http(other_tenant) as client:
        for path in (f"{PATH}/{made.id}", f"{PATH}/chatcmpl-x", f"{PATH}/{response_id(made.id)}"):
            assert client.get(path).status_code == client.delete(path).status_code == 404
        assert client.get(PATH).json()["data"] == []
    assert server.openai().chat.completions.retrieve(made.id).id == made.id
