"""``/api/sessions``: the shapes and the errors that Hermes frontends rely on."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.hermes_client import (
    ended_run,
    get,
    post,
    run_status,
    start_run,
)
from tests.support.people import create_key
from tests.support.scripted_requests import call
from tests.support.server import Server, eventually, script
from tests.support.session_client import create_session, read_messages, read_session, send_message, update_session
from tests.support.stored_rows import count_rows, stored_rows

SESSION_KEYS = {
    *("id", "source", "user_id", "model", "title", "started_at", "ended_at", "end_reason", "message_count"),
    *("tool_call_count", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"),
    *("reasoning_tokens", "estimated_cost_usd", "actual_cost_usd", "api_call_count", "parent_session_id"),
    *("last_active", "preview", "pinned", "archived", "hidden", "has_system_prompt", "has_model_config"),
}
MESSAGE_KEYS = {
    *("id", "session_id", "role", "content", "tool_call_id", "tool_calls", "tool_name", "timestamp"),
    *("token_count", "finish_reason", "reasoning", "reasoning_content", "display_kind"),
}


def test_a_session_is_made_read_and_changed(server: Server) -> None:
    made = create_session(server, title="A title of its own", system_prompt="Be kind.")
    assert set(made) >= SESSION_KEYS
    assert re.fullmatch(r"api_\d+_[0-9a-f]{8}", made["id"])
    assert (made["message_count"], made["has_system_prompt"], made["turn_policy"]) == (0, True, "queue")
    assert "Be kind." not in str(made)
    changed = update_session(server, made["id"], title="Another", pinned=True, archived=True, end_reason="done").json()
    assert changed["object"] == "hermes.session"
    session = changed["session"]
    assert (session["title"], session["pinned"], session["archived"]) == ("Another", True, True)
    assert (session["end_reason"], isinstance(session["ended_at"], float)) == ("done", True)
    send_message(server, made["id"])
    assert read_session(server, made["id"])["ended_at"] is None
    assert "Be kind." in server.model_calls("hello")[-1]["instructions"]


@pytest.mark.parametrize(
    ("body", "status", "code", "param"),
    [
        ({"id": "a/b"}, 400, "invalid_session_id", "id"),
        ({"session_id": 3}, 400, "invalid_session_id", "session_id"),
        ({"title": 3}, 400, "invalid_title", "title"),
        ({"title": "t" * 301}, 400, "invalid_title", "title"),
        ({"title": "taken title"}, 400, "invalid_title", "title"),
        ({"system_prompt": 3}, 400, "invalid_system_prompt", "system_prompt"),
        ({"model": "unknown"}, 404, "model_not_found", "model"),
        ({"turn_policy": "maybe"}, 400, "invalid_value", "turn_policy"),
        ({"source": "s" * 21}, 400, None, "source"),
        ({"source": 0}, 400, "invalid_type", "source"),
        ({"source": []}, 400, "invalid_type", "source"),
        ({"id": "one", "session_id": "two"}, 400, None, "session_id"),
        ({"id": "taken-id"}, 409, "session_exists", "id"),
    ],
)
def test_bad_sessions_are_named(server: Server, body: dict[str, Any], status: int, code: str, param: str) -> None:
    post(server, "/api/sessions", {"id": "taken-id", "title": "taken title"})
    refused = post(server, "/api/sessions", body)
    error = refused.json()["error"]
    assert (refused.status_code, error["code"], error["param"]) == (status, code, param)
    assert status != 409 or refused.headers["x-should-retry"] == "false"


def test_bad_changes_are_named(server: Server) -> None:
    session_id = create_session(server)["id"]
    create_session(server, title="a taken title")
    for fields, code in (
        ({"model": "x"}, "unsupported_session_field"),
        ({"title": "a taken title"}, "invalid_title"),
        ({"pinned": 1}, "invalid_type"),
        ({"turn_policy": "x"}, "invalid_value"),
        ({"end_reason": 3}, "invalid_type"),
    ):
        refused = update_session(server, session_id, **fields)
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, code)
        assert refused.json()["error"]["param"] == next(iter(fields))


def test_sessions_are_listed_by_activity_in_pages(server: Server) -> None:
    made = [create_session(server, source="paged")["id"] for _ in range(5)]
    send_message(server, made[0])
    newest_first = [made[0], *made[:0:-1]]
    by_number = [get(server, "/api/sessions", source="paged", limit=2, offset=n).json() for n in (0, 2, 4)]
    assert [session["id"] for page in by_number for session in page["data"]] == newest_first
    assert [(page["limit"], page["offset"], page["has_more"]) for page in by_number] == [
        (2, 0, True),
        (2, 2, True),
        (2, 4, False),
    ]
    seen: list[str] = []
    page: dict[str, Any] = {"has_more": True, "last_id": ""}
    while page["has_more"]:
        page = get(server, "/api/sessions", source="paged", limit=2, after=page["last_id"]).json()
        seen += [session["id"] for session in page["data"]]
    assert seen == newest_first
    update_session(server, made[1], pinned=True)
    pages = [get(server, "/api/sessions", source="paged", limit=2, offset=n).json() for n in (0, 2, 4)]
    assert [[session["id"] for session in page["data"]] for page in pages] == [
        [*newest_first[:2], made[1]],
        newest_first[2:4],
        newest_first[4:],
    ]
    assert (pages[0]["last_id"], pages[0]["has_more"]) == (newest_first[1], True)
    by_cursor = get(server, "/api/sessions", source="paged", limit=2, after=newest_first[1]).json()
    assert [session["id"] for session in by_cursor["data"]] == newest_first[2:4]
    update_session(server, made[1], hidden=True)
    assert made[1] not in [s["id"] for s in get(server, "/api/sessions", source="paged").json()["data"]]
    shown = get(server, "/api/sessions", source="paged", include_hidden="true").json()["data"]
    assert made[1] in [session["id"] for session in shown]
    update_session(server, made[2], title="findable")
    assert [s["id"] for s in get(server, "/api/sessions", title="findable").json()["data"]] == [made[2]]
    for params, param in (({"limit": 201}, "limit"), ({"offset": "x"}, "offset"), ({"after": "unknown"}, "after")):
        assert get(server, "/api/sessions", **params).json()["error"]["param"] == param


def test_messages_have_the_whole_turn(server: Server) -> None:
    session_id = create_session(server)["id"]
    steps = ({"think": "let me see"}, {"say": "I look. "}, call("effect", text="seen"), call("_hidden", text="no"))
    send_message(server, session_id, *steps)
    found = read_messages(server, session_id)
    assert all(set(message) == MESSAGE_KEYS for message in found)
    assert [message["role"] for message in found] == ["user", "assistant", "tool", "assistant"]
    _, called, answered, last = found
    assert (called["content"], called["reasoning"]) == ("I look. ", "let me see")
    [tool_call] = called["tool_calls"]
    assert tool_call["function"] == {"name": "effect", "arguments": '{"text":"seen"}'}
    assert (answered["tool_call_id"], answered["tool_name"]) == (tool_call["id"], "effect")
    assert (answered["content"], last["finish_reason"]) == ("seen", "stop")
    session = read_session(server, session_id)
    assert (session["message_count"], session["tool_call_count"]) == (4, 1)
    assert session["preview"].startswith('{"script"')
    assert session["output_tokens"] > 0


def test_messages_in_pages(server: Server) -> None:
    session_id = create_session(server)["id"]
    for _ in range(3):
        send_message(server, session_id)
    ids = [message["id"] for message in read_messages(server, session_id)]
    assert len(ids) == len(set(ids)) == 6 == read_session(server, session_id)["message_count"]
    answer = get(server, f"/api/sessions/{session_id}/messages", limit=2).json()
    assert answer["pagination"] == {"limit": 2, "offset": 0, "order": "latest", "returned": 2}
    assert (answer["object"], answer["session_id"]) == ("list", session_id)
    assert [message["id"] for message in answer["data"]] == ids[4:]

    def page(**params: Any) -> list[str]:
        return [message["id"] for message in read_messages(server, session_id, **params)]

    assert page(limit=2, offset=2) == ids[2:4]
    assert page(limit=2, order="oldest") == ids[:2]
    assert page(limit=2, order="oldest", offset=3) == ids[3:5]
    assert page(limit=2, after=ids[1]) == ids[2:4]
    assert page(limit=2, before=ids[4]) == ids[2:4]
    for params, param in (({"limit": 501}, "limit"), ({"order": "x"}, "order"), ({"after": "x"}, "after")):
        refused = get(server, f"/api/sessions/{session_id}/messages", **params)
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, param)


def test_turns_of_every_api_are_in_the_session(server: Server) -> None:
    session_id = create_session(server)["id"]
    send_message(server, session_id, {"say": "from the chat"})
    client = server.openai()
    client.responses.create(model="hermes-agent", input="by header", extra_headers={"X-Hermes-Session-Id": session_id})
    run_id = start_run(server, {"input": "by run", "session_id": session_id})
    assert ended_run(server, run_id)["session_id"] == session_id
    assert "from the chat" in server.model_calls("by run")[0]["texts"]
    assert [m["content"] for m in read_messages(server, session_id) if m["role"] == "user"][1:] == [
        "by header",
        "by run",
    ]


def test_deleting_a_session_erases_its_turns(make_server: Callable[..., Server]) -> None:
    server = make_server()
    session_id = create_session(server, title="gone")["id"]
    ended = send_message(server, session_id, {"say": "erase me"})["response_id"]
    running = start_run(server, {"input": script({"say": "x "}, {"gate": "never"}), "session_id": session_id})
    eventually(lambda: run_status(server, running)["output"] == "x ")
    with server.http() as client:
        deleted = client.delete(f"/api/sessions/{session_id}")
        assert deleted.json() == {"object": "hermes.session.deleted", "id": session_id, "deleted": True}
        assert client.delete(f"/api/sessions/{session_id}").json()["error"]["code"] == "session_not_found"
        assert client.get(f"/v1/responses/{ended}").status_code == 404
        assert client.get(f"/v1/runs/{running}").status_code == 404
    eventually(lambda: count_rows(server, "eventsegment") == 0, 20, "the end of all content")
    assert count_rows(server, "inputitem") == 0
    statuses = stored_rows(server, "response", "status", order_by="turn")
    assert statuses == [("completed",), ("cancelled",)]
    again = create_session(server, id=session_id, title="gone")
    assert again["message_count"] == 0


def test_sessions_of_others_do_not_exist(server: Server) -> None:
    session_id = create_session(server)["id"]
    newcomer = create_key(server, "newcomer")  # without any session
    with server.http(newcomer) as client:
        path = f"/api/sessions/{session_id}"
        body = {"message": "hi", "title": "t", "model": "default"}
        answers = [
            *(client.get(path), client.delete(path), client.get(f"{path}/messages"), client.patch(path, json={})),
            *(client.post(f"{path}/{verb}", json=body) for verb in ("fork", "chat", "chat/stream", "model")),
        ]
        assert client.get("/api/sessions").json()["data"] == []
    assert {(answer.status_code, answer.json()["error"]["code"]) for answer in answers} == {(404, "session_not_found")}
    assert post(server, "/api/sessions", {"id": session_id}, newcomer).status_code == 201
