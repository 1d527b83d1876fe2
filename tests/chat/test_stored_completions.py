"""Stored completions: their metadata can be replaced, and the messages they were asked with can be read."""

from typing import Any

import openai
import pytest

from tests.support.chat_client import WEATHER, complete, post, response_id, user
from tests.support.checker import check_log
from tests.support.server import Server

PICTURE = {"type": "image_url", "image_url": {"url": "https://x.example/a.png", "detail": "low"}}


def messages(server: Server, completion_id: str, **params: Any) -> list[dict[str, Any]]:
    listed = server.openai().chat.completions.messages.list(completion_id, **params)
    return [message.to_dict() for message in listed]


# -- metadata ---------------------------------------------------------------------------
def test_metadata_is_replaced_and_found(server: Server) -> None:
    made = complete(server, [user("marked")], store=True, metadata={"suite": "update", "old": "1"})
    completions = server.openai().chat.completions
    updated = completions.update(made["id"], metadata={"suite": "updated"})
    assert updated.to_dict()["metadata"] == {"suite": "updated"}
    assert updated.choices[0].message.content == made["choices"][0]["message"]["content"]
    assert completions.retrieve(made["id"]).to_dict()["metadata"] == {"suite": "updated"}
    listed = list(completions.list(metadata={"suite": "updated"}))
    assert [(one.id, one.to_dict()["metadata"]) for one in listed] == [(made["id"], {"suite": "updated"})]
    assert list(completions.list(metadata={"suite": "update"})) == []
    assert completions.update(made["id"], metadata=None).to_dict()["metadata"] == {}
    check_log(server, response_id(made["id"]))


@pytest.mark.parametrize(
    ("body", "param"), [({}, "metadata"), ({"metadata": "x"}, "metadata"), ({"metadata": {"a": 1}}, "metadata.a")]
)
def test_bad_metadata_is_named(server: Server, body: dict[str, Any], param: str) -> None:
    made = complete(server, [user("hi")], store=True)
    with server.http() as client:
        refused = client.post(f"/v1/chat/completions/{made['id']}", json=body)
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, param)
        named = client.post(f"/v1/chat/completions/{made['id']}", json={"metadata": {}, "model": "x"})
    assert named.headers["x-hermes-ignored"] == "model"


# -- messages ---------------------------------------------------------------------------
def test_the_messages_are_those_of_the_request(server: Server) -> None:
    asked = [{"role": "system", "content": "Be short."}, user(["look", PICTURE])]
    made = complete(server, asked, store=True)
    system, question = messages(server, made["id"])
    assert system == {
        "id": f"{made['id']}-0",
        "role": "system",
        "content": "Be short.",
        "name": None,
        "content_parts": None,
    }
    assert (question["id"], question["content"]) == (f"{made['id']}-1", "look")
    assert question["content_parts"] == [{"type": "text", "text": "look"}, PICTURE]


def test_calls_and_their_results_are_messages_of_their_roles(server: Server) -> None:
    function = {"name": "get_weather", "arguments": '{"city": "Oslo"}'}
    call = {"id": "call_1", "type": "function", "function": function}
    asked = [
        user("weather?"),
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "rain"},
        {"role": "assistant", "refusal": "no more"},
        user("again"),
    ]
    made = complete(server, asked, store=True, tools=[WEATHER])
    found = messages(server, made["id"])
    assert [message["role"] for message in found] == ["user", "assistant", "tool", "assistant", "user"]
    assert (found[1]["content"], found[1]["tool_calls"]) == (None, [call])
    assert (found[2]["tool_call_id"], found[2]["content"]) == ("call_1", "rain")
    assert (found[3]["content"], found[3]["refusal"]) == (None, "no more")


def test_messages_that_an_earlier_completion_holds_are_listed_too_in_pages(server: Server) -> None:
    first = complete(server, [user("paged opening")], store=True)
    reply = first["choices"][0]["message"]
    made = complete(server, [user("paged opening"), reply, user("and then?")], store=True)
    found = messages(server, made["id"])
    assert [message["content"] for message in found] == ["paged opening", reply["content"], "and then?"]
    assert messages(server, made["id"], limit=1) == found
    assert messages(server, made["id"], order="desc") == found[::-1]
    page = server.openai().chat.completions.messages.list(made["id"], after=found[0]["id"], limit=1)
    assert [message.id for message in page.data] == [found[1]["id"]]


def test_only_ones_own_stored_completions_have_them(server: Server, other_tenant: str) -> None:
    kept = complete(server, [user("mine")], store=True)["id"]
    unkept = complete(server, [user("not kept")])["id"]
    for key, completion_id in ((other_tenant, kept), (None, unkept), (None, "chatcmpl-x")):
        completions = server.openai(key).chat.completions
        with pytest.raises(openai.NotFoundError):
            list(completions.messages.list(completion_id))
        with pytest.raises(openai.NotFoundError):
            completions.update(completion_id, metadata={})
    assert post(server, [user("mine")], store=True).status_code == 200
