"""Conversations: items in order, under an id or a name, for their owner alone."""

import threading
from typing import Any

import openai
import pytest
from django.contrib.auth import get_user_model
from openai.types.conversations import Conversation

from responses_app.models import InputItem, Response
from responses_app.protocol.errors import ConversationNotFound, InvalidRequest
from responses_app.protocol.ids import item_id
from responses_app.protocol.items import Item
from responses_app.services import conversations as service
from tests.support.bulk_rows import make_row, read_items
from tests.support.errors import assert_error
from tests.support.server import Server
from tests.support.stored_rows import count_rows, session_of, stored_rows


def message(texts_of: str) -> Any:
    return {"type": "message", "role": "user", "content": texts_of}


def texts_of(items: Any) -> list[str]:
    return [item.content[0].text for item in items]


@pytest.fixture
def conversation(server: Server) -> Conversation:
    return server.openai().conversations.create(items=[message(f"line {n}") for n in range(5)])


# -- the conversation -------------------------------------------------------------------
def test_a_conversation_is_made_read_changed_and_deleted(server: Server) -> None:
    client = server.openai().conversations
    made = client.create(metadata={"topic": "tea"})
    assert (made.id[:5], made.object, made.metadata) == ("conv_", "conversation", {"topic": "tea"})
    assert set(made.model_dump()) == {"id", "object", "created_at", "metadata"}
    assert client.retrieve(made.id) == made
    assert client.update(made.id, metadata={"topic": "coffee"}).metadata == {"topic": "coffee"}
    assert client.retrieve(made.id).metadata == {"topic": "coffee"}
    assert client.update(made.id, metadata=None).metadata == {}
    deleted = client.delete(made.id)
    assert (deleted.id, deleted.object, deleted.deleted) == (made.id, "conversation.deleted", True)
    for verb in (client.retrieve, client.delete, client.items.list):
        with pytest.raises(openai.NotFoundError) as caught:
            verb(made.id)
        assert caught.value.code == "conversation_not_found"


@pytest.mark.parametrize("content", [b"", b"{}", b'{"items": [], "metadata": null, "name": null}'])
def test_an_empty_request_makes_an_empty_conversation(server: Server, content: bytes) -> None:
    with server.http() as client:
        made = client.post("/v1/conversations", content=content).json()
        page = client.get(f"/v1/conversations/{made['id']}/items").json()
    assert page == {"object": "list", "data": [], "first_id": None, "last_id": None, "has_more": False}


def test_a_name_stands_for_the_id_and_is_unique_per_owner(server: Server, other_tenant: str) -> None:
    with server.http() as client:
        made = client.post("/v1/conversations", json={"name": "garden plans", "items": [message("roses")]}).json()
        assert made["name"] == "garden plans"
        assert client.get("/v1/conversations/garden plans").json() == made
        assert client.get("/v1/conversations/garden plans/items").json()["data"][0]["content"][0]["text"] == "roses"
        again = client.post("/v1/conversations", json={"name": "garden plans"})
        assert assert_error(again, 400, "name")["code"] == "name_taken"
    with server.http(other_tenant) as client:
        assert_error(client.get("/v1/conversations/garden plans"), 404, "conversation_id")
        assert client.post("/v1/conversations", json={"name": "garden plans"}).json()["id"] != made["id"]
    with server.http() as client:
        assert client.delete("/v1/conversations/garden plans").json()["id"] == made["id"]  # and the name is free
        assert client.post("/v1/conversations", json={"name": "garden plans"}).status_code == 200


# -- items ------------------------------------------------------------------------------
def test_items_are_added_in_order_and_walked_in_pages(server: Server, conversation: Conversation) -> None:
    items = server.openai().conversations.items
    added = items.create(conversation.id, items=[message("line 5"), message("line 6")])
    assert texts_of(added.data) == ["line 5", "line 6"]
    assert (added.first_id, added.last_id, added.has_more) == (added.data[0].id, added.data[1].id, False)
    expected = [f"line {n}" for n in range(7)]
    assert texts_of(items.list(conversation.id, limit=2, order="asc")) == expected
    assert texts_of(items.list(conversation.id, limit=3)) == expected[::-1]
    page = items.list(
        conversation.id, order="asc", after=added.data[0].id or "", include=["message.output_text.logprobs"]
    )
    assert texts_of(page.data) == ["line 6"]


def test_an_item_is_read_and_taken_out_by_its_id(server: Server, conversation: Conversation) -> None:
    items = server.openai().conversations.items
    found = items.list(conversation.id, order="asc").data
    ids = [item.id or "" for item in found]
    assert len(set(ids)) == 5
    assert all(one.startswith("msg_") for one in ids)
    assert items.retrieve(ids[2], conversation_id=conversation.id) == found[2]
    assert items.delete(ids[2], conversation_id=conversation.id) == conversation
    assert texts_of(items.list(conversation.id, order="asc")) == ["line 0", "line 1", "line 3", "line 4"]
    answer = server.openai().responses.create(input="how often?", conversation=conversation.id)
    assert "you wrote 4 times" in answer.output_text
    for verb in (items.retrieve, items.delete):
        with pytest.raises(openai.NotFoundError) as caught:
            verb(ids[2], conversation_id=conversation.id)
        assert (caught.value.code, caught.value.param) == ("item_not_found", "item_id")


def test_an_item_of_another_conversation_is_no_cursor(server: Server, conversation: Conversation) -> None:
    client = server.openai().conversations
    other = client.create(items=[message("elsewhere")])
    with pytest.raises(openai.BadRequestError) as caught:
        client.items.list(conversation.id, after=client.items.list(other.id).data[0].id or "")
    assert caught.value.param == "after"


def test_items_added_at_the_same_time_all_have_a_place(server: Server, conversation: Conversation) -> None:
    def add(name: str) -> None:
        for number in range(10):
            with server.http() as client:
                body = {"items": [message(f"{name} {number} {half}") for half in "ab"]}
                assert client.post(f"/v1/conversations/{conversation.id}/items", json=body).status_code == 200

    threads = [threading.Thread(target=add, args=(name,)) for name in ("red", "green", "blue")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    lines = texts_of(server.openai().conversations.items.list(conversation.id, limit=7, order="asc"))
    assert len(lines) == 65
    for name in ("red", "green", "blue"):
        own = [line for line in lines if line.startswith(name)]
        assert own == [f"{name} {number} {half}" for number in range(10) for half in "ab"]
    assert all(first[:-1] == second[:-1] for first, second in zip(lines[5::2], lines[6::2], strict=True))


# -- with responses ---------------------------------------------------------------------
def test_a_response_reads_the_items_and_leaves_its_own(server: Server, conversation: Conversation) -> None:
    client = server.openai()
    answer = client.responses.create(input="and now?", conversation=conversation.id)
    assert 'you wrote 5 times, first: "line 0"' in answer.output_text
    items = list(client.conversations.items.list(conversation.id, limit=3, order="asc"))
    assert texts_of(items) == [*(f"line {n}" for n in range(5)), "and now?", answer.output_text]
    assert items[-1].id == answer.output[0].id
    assert client.conversations.items.retrieve(items[-2].id or "", conversation_id=conversation.id) == items[-2]
    client.responses.delete(answer.id)
    assert texts_of(client.conversations.items.list(conversation.id, order="asc")) == [f"line {n}" for n in range(5)]


def test_responses_and_the_session_survive_their_conversation(server: Server, conversation: Conversation) -> None:
    client = server.openai()
    answer = client.responses.create(input="stay", conversation=conversation.id)
    client.conversations.delete(conversation.id)
    assert client.responses.retrieve(answer.id).output_text == answer.output_text
    assert len(list(client.responses.input_items.list(answer.id))) == 1
    assert stored_rows(server, "session", "source", id=session_of(server, answer.id)) == [("conversations",)]
    assert stored_rows(server, "conversationitem", "id", conversation_id=conversation.id) == []


# -- what is refused --------------------------------------------------------------------
def test_a_foreign_conversation_is_a_404_in_every_verb(
    server: Server, other_tenant: str, conversation: Conversation
) -> None:
    inside = server.openai().conversations.items.list(conversation.id).data[0].id
    path = f"/v1/conversations/{conversation.id}"
    with server.http(other_tenant) as client:
        answers = [
            client.get(path),
            client.post(path, json={"metadata": {"taken": "over"}}),
            client.delete(path),
            client.get(f"{path}/items"),
            client.post(f"{path}/items", json={"items": [message("intruder")]}),
            client.get(f"{path}/items/{inside}"),
            client.delete(f"{path}/items/{inside}"),
        ]
        unknown = assert_error(client.get("/v1/conversations/conv_unknown"), 404, "conversation_id")
        own = client.post("/v1/conversations", json={}).json()["id"]
        for method in ("GET", "DELETE"):
            assert_error(client.request(method, f"/v1/conversations/{own}/items/{inside}"), 404, "item_id")
    for answer in answers:
        error = assert_error(answer, 404, "conversation_id")
        assert error == {**unknown, "message": error["message"]}
    assert server.openai().conversations.retrieve(conversation.id) == conversation
    assert len(list(server.openai().conversations.items.list(conversation.id))) == 5


def test_odd_references_are_not_found(server: Server) -> None:
    with server.http() as client:
        for reference in ("conv_%00", "%00", "conv_", "conv_x" * 100, "no such name"):
            error = assert_error(client.get(f"/v1/conversations/{reference}"), 404, "conversation_id")
            assert error["code"] == "conversation_not_found"
        made = client.post("/v1/conversations", json={}).json()["id"]
        assert_error(client.get(f"/v1/conversations/{made}/items/%00"), 404, "item_id")


BAD_BODIES: list[tuple[Any, str | None]] = [
    ([], None),
    ({"items": 5}, "items"),
    ({"items": "a text"}, "items"),
    ({"items": [5]}, "items[0]"),
    ({"items": [message("x"), {"role": "robot", "content": "x"}]}, "items[1].role"),
    ({"items": [message("a\0b")]}, "items[0].content"),
    ({"items": [message("x")] * 21}, "items"),
    ({"metadata": [], "items": [message("x")]}, "metadata"),
    ({"metadata": {"k": 1}}, "metadata.k"),
    *(({"name": name}, "name") for name in (5, "", "conv_mine", "a/b", "..", "x" * 201)),
]


@pytest.mark.parametrize(("body", "param"), BAD_BODIES, ids=range(len(BAD_BODIES)))
def test_a_bad_field_is_named_and_nothing_is_made(server: Server, body: Any, param: str | None) -> None:
    before = count_rows(server, "session")
    with server.http() as client:
        assert_error(client.post("/v1/conversations", json=body), 400, param)
    assert count_rows(server, "session") == before


def test_bad_changes_are_named(server: Server, conversation: Conversation) -> None:
    path = f"/v1/conversations/{conversation.id}"
    with server.http() as client:
        assert_error(client.post(path, json={}), 400, "metadata")
        assert_error(client.post(path, json={"metadata": "x"}), 400, "metadata")
        assert_error(client.post(path, content=b"{"), 400, None)
        for items in (None, [], "x", [message("x")] * 21):
            assert_error(client.post(f"{path}/items", json={"items": items}), 400, "items")
        assert_error(client.post(f"{path}/items"), 400, None)
        for params, name in (({"limit": "0"}, "limit"), ({"order": "up"}, "order"), ({"after": "\0"}, "after")):
            assert_error(client.get(f"{path}/items", params=params), 400, name)
        for method, at in (("GET", "/v1/conversations"), ("PUT", path), ("DELETE", f"{path}/items")):
            assert_error(client.request(method, at), 405, None)


def test_large_bodies_are_taken_up_to_the_limit(server: Server, conversation: Conversation) -> None:
    path = f"/v1/conversations/{conversation.id}/items"
    with server.http() as client:
        assert client.post(path, json={"items": [message("x" * 9_000_000)]}).status_code == 200
        error = assert_error(client.post(path, json={"items": [message("x" * 10_000_000)]}), 413, None)
    assert error["code"] == "body_too_large"


def test_unknown_fields_are_named(server: Server) -> None:
    with server.http() as client:
        answer = client.post("/v1/conversations", json={"colour": 1, "a\r\nX-Forged: 1": 1, "b": None})
    assert answer.headers["x-hermes-ignored"] == "a\\r\\nX-Forged: 1, colour"
    assert "x-forged" not in answer.headers


# -- the services that admission and settling call ------------------------------------------
def settled_response(asked: int, answered: int) -> tuple[Response, list[Item], list[Item]]:
    row = make_row()
    inputs: list[Item] = [{"type": "message", "id": item_id(row.pk, "message", n, is_input=True)} for n in range(asked)]
    row.output = [{"type": "message", "id": item_id(row.pk, "message", n)} for n in range(answered)]
    row.save()
    InputItem.objects.bulk_create(InputItem(response=row, position=n, item=item) for n, item in enumerate(inputs))
    return row, inputs, row.output


@pytest.mark.django_db
def test_items_of_many_responses_cost_three_queries(django_assert_num_queries: Any) -> None:
    turns = [settled_response(2, 3) for _ in range(5)]
    conversation = service.open_conversation(turns[0][0].owner_id, "many turns")
    [own] = service.add_items(conversation.pk, [message("first")])
    for row, inputs, output in turns:
        service.append_response(conversation.pk, row.pk, inputs, output)
    with django_assert_num_queries(3):
        found = read_items(conversation.pk)
    assert found == [own, *(item for _, inputs, output in turns for item in [*inputs, *output])]


@pytest.mark.django_db
def test_appending_again_or_to_what_is_gone_changes_nothing() -> None:
    row, inputs, output = settled_response(1, 1)
    conversation = service.open_conversation(row.owner_id, "once")
    for _ in range(2):
        service.append_response(conversation.pk, row.pk, inputs, output)
    assert read_items(conversation.pk) == [*inputs, *output]
    service.delete_conversation(conversation.pk)
    service.append_response(conversation.pk, row.pk, inputs, output)
    assert read_items(conversation.pk) == []


@pytest.mark.django_db
def test_a_new_name_opens_a_conversation_and_an_unknown_id_does_not() -> None:
    owner = get_user_model().objects.create(username="owner")
    opened = service.open_conversation(owner.pk, "notes")
    assert opened.session.source == "conversations"
    assert service.open_conversation(owner.pk, "notes") == service.open_conversation(owner.pk, opened.pk) == opened
    with pytest.raises(ConversationNotFound):
        service.open_conversation(owner.pk, "conv_unknown")
    with pytest.raises(InvalidRequest) as caught:
        service.open_conversation(owner.pk, "no/slashes")
    assert caught.value.param == "conversation"
