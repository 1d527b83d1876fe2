"""``/v1/responses`` takes history and input in the form of Hermes."""

import json
from typing import Any

import httpx
import pytest

from tests.support.checker import check_log
from tests.support.server import Server, text
from tests.support.stored_rows import stored_rows
from tests.support.websockets import socket

pytestmark = pytest.mark.any_database

HISTORY = [{"role": "user", "content": "the word is plum"}, {"role": "assistant", "content": "noted"}]
PICTURE = {"type": "image_url", "image_url": {"url": "https://x.example/a.png"}}


def post(server: Server, body: dict[str, Any], path: str = "/v1/responses", **headers: str) -> httpx.Response:
    with server.http() as client:
        return client.post(path, json=body, headers=headers)


def create(server: Server, **body: Any) -> dict[str, Any]:
    answer = post(server, body)
    assert answer.status_code == 200, answer.text
    made: dict[str, Any] = answer.json()
    return made


def input_items(server: Server, response_id: str) -> list[dict[str, Any]]:
    with server.http() as client:
        listed = client.get(f"/v1/responses/{response_id}/input_items", params={"order": "asc"})
    found: list[dict[str, Any]] = listed.json()["data"]
    return found


def seen(server: Server, marker: str) -> list[str]:
    texts: list[str] = server.model_calls(marker)[0]["texts"]
    return texts


def test_bare_texts_and_messages_without_a_role_are_the_users(server: Server) -> None:
    made = create(server, input=["first text", {"content": "second text"}, {"content": ["strings-now"]}])
    stored = input_items(server, made["id"])
    assert [item["role"] for item in stored] == ["user"] * 3
    assert seen(server, "strings-now") == ["first text", "second text", "strings-now"]
    check_log(server, made["id"])


def test_images_of_chat_are_taken(server: Server) -> None:
    made = create(server, input=[{"role": "user", "content": ["look", PICTURE]}])
    [asked] = input_items(server, made["id"])
    assert asked["content"][1] == {"type": "input_image", "image_url": "https://x.example/a.png"}


def test_history_in_the_body_comes_before_the_input(server: Server) -> None:
    made = create(server, input="history-now", conversation_history=HISTORY)
    assert seen(server, "history-now") == ["the word is plum", "noted", "history-now"]
    [(request,)] = stored_rows(server, "response", "request", id=made["id"])
    assert "plum" not in json.dumps(request)  # it is stored as items, and only there
    check_log(server, made["id"])


def test_history_in_the_body_replaces_that_of_the_chain(server: Server) -> None:
    first = create(server, input="of the chain", instructions="Be brief.")
    body = {"input": "replaced-now", "conversation_history": HISTORY, "previous_response_id": first["id"]}
    answer = post(server, body)
    assert seen(server, "replaced-now") == ["the word is plum", "noted", "replaced-now"]
    with server.http() as client:
        of_first = client.get(f"/v1/responses/{first['id']}")
    assert answer.headers["x-hermes-session-id"] == of_first.headers["x-hermes-session-id"]
    create(server, input="after-replaced", previous_response_id=answer.json()["id"])
    assert seen(server, "after-replaced")[:3] == ["the word is plum", "noted", "replaced-now"]


def test_history_in_the_body_replaces_that_of_the_session(server: Server) -> None:
    header = {"X-Hermes-Session-Id": "with-history"}
    post(server, {"input": "of the session"}, **header)
    answer = post(server, {"input": "session-history-now", "conversation_history": HISTORY}, **header)
    assert answer.headers["x-hermes-session-id"] == "with-history"
    assert seen(server, "session-history-now") == ["the word is plum", "noted", "session-history-now"]


def test_an_empty_history_is_none(server: Server) -> None:
    first = create(server, input="of the chain")
    create(server, input="empty-history", conversation_history=[], previous_response_id=first["id"])
    assert seen(server, "empty-history")[0] == "of the chain"


def test_history_in_the_body_is_counted_instead_of_the_chains(server: Server) -> None:
    first = create(server, input="a long beginning " * 100)
    path = "/v1/responses/input_tokens"
    alone = post(server, {"input": "x", "conversation_history": HISTORY}, path).json()
    chained = {"input": "x", "conversation_history": HISTORY, "previous_response_id": first["id"], "personality": "p"}
    answer = post(server, chained, path)
    assert answer.json() == alone
    assert answer.headers["x-hermes-ignored"] == "personality"


def test_history_on_a_websocket_replaces_the_turns_of_the_socket(server: Server) -> None:
    with socket(server) as opened:
        first = opened.ask(input="on the socket", store=False)["response"]
        fields = {"conversation_history": HISTORY, "previous_response_id": first["id"], "store": False}
        second = opened.ask(input="socket-now", **fields)["response"]
        opened.ask(input="socket-later", previous_response_id=second["id"], store=False)
    assert seen(server, "socket-now") == ["the word is plum", "noted", "socket-now"]
    assert seen(server, "socket-later") == ["the word is plum", "noted", "socket-now", text(second), "socket-later"]


CALL = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"conversation_history": "no"}, "conversation_history"),
    ({"conversation_history": ["no"]}, "conversation_history[0]"),
    ({"conversation_history": [{"role": "x", "content": "y"}]}, "conversation_history[0].role"),
    ({"conversation_history": [*HISTORY, CALL]}, "conversation_history[2].call_id"),
    ({"conversation_history": HISTORY, "input": ["x", CALL]}, "input[1].call_id"),
    ({"conversation_history": [{"type": "item_reference", "id": "msg_x"}]}, "conversation_history[0].id"),
    ({"conversation_history": HISTORY, "conversation": "name"}, "conversation_history"),
    ({"input": [5]}, "input[0]"),
]


@pytest.mark.parametrize(("fields", "param"), REFUSED, ids=range(len(REFUSED)))
def test_what_can_not_be_used_is_named(server: Server, fields: dict[str, Any], param: str) -> None:
    answer = post(server, {"input": "x"} | fields)
    assert answer.status_code in (400, 404)
    assert answer.json()["error"]["param"] == param


def test_ignored_items_of_the_history_are_named_there(server: Server) -> None:
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    answer = post(server, {"input": "x", "conversation_history": [*HISTORY, search]})
    assert answer.headers["x-hermes-ignored"] == "conversation_history[2] (web_search_call)"
