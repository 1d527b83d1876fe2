"""Chat completions in their sessions: whose history counts, what is stored of it, and who stops the work."""

import threading
from typing import Any

from tests.support.chat_client import (
    WEATHER,
    complete,
    post,
    response_id,
    scripted,
    stream_completion,
    streamed,
    user,
)
from tests.support.server import Server, eventually, text
from tests.support.stored_history import TURNS, assert_turns_cost_the_same
from tests.support.stored_rows import ids_with_input, input_items, stored_rows
from tests.support.stored_rows import session_of as stored_session
from tests.support.stored_rows import status_of as stored_status

SESSION = "X-Hermes-Session-Id"


def session_of(server: Server, messages: Any, key: str | None = None, **fields: Any) -> str:
    answer = post(server, messages, key=key, **fields)
    assert answer.status_code == 200, answer.text
    return str(answer.headers[SESSION])


def status_of(server: Server, marker: str) -> str:
    return "".join(stored_status(server, found) for found in ids_with_input(server, marker))


# -- the session of a conversation ------------------------------------------------------
def test_the_session_is_the_same_for_all_turns_of_a_conversation(server: Server) -> None:
    opening = [{"role": "system", "content": "Be short."}, user("stable opening")]
    first = post(server, opening)
    reply = first.json()["choices"][0]["message"]
    later = [*opening, reply, user("and then?")]
    edited = [*opening, {**reply, "content": "something else"}, user("and then?")]
    assert {session_of(server, one) for one in (later, edited, opening)} == {first.headers[SESSION]}
    assert session_of(server, opening, store=False) == first.headers[SESSION]
    assert stream_completion(server, later).headers[SESSION] == first.headers[SESSION]
    for other in ([user("stable opening")], [opening[0], user("another opening")], [user([picture()]), opening[1]]):
        assert session_of(server, other) != first.headers[SESSION]


def picture() -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": "https://example.invalid/a.png"}}


def test_two_owners_never_share_a_session(server: Server, other_tenant: str) -> None:
    ids = {session_of(server, [user("the same words")], key) for key in (None, other_tenant)}
    assert len(ids) == 2


def test_turns_of_one_conversation_never_wait_for_each_other(server: Server) -> None:
    with streamed(server, [user("grouped"), *scripted({"gate": "chat-group"}, {"say": "x"})]) as (answer, received):
        other = post(server, [user("grouped"), user("meanwhile")])
        assert other.status_code == 200
        assert other.headers[SESSION] == answer.headers[SESSION]
        server.open_gate("chat-group")
        list(received)


# -- history ----------------------------------------------------------------------------
def test_a_long_chat_costs_the_same_on_every_turn(server: Server) -> None:
    history: list[dict[str, Any]] = [{"role": "system", "content": "chat resent"}]
    ids: list[str] = []
    for number in range(TURNS):
        history.append(user(f"write 7 words {number:03}"))
        made = complete(server, history)
        history.append(made["choices"][0]["message"])
        ids.append(response_id(made["id"]))
    assert_turns_cost_the_same(server, ids)
    assert len({stored_session(server, one) for one in ids}) == 1
    assert sum(input_items(server, one) for one in ids) == TURNS + 1
    seen = server.model_calls(f"write 7 words {TURNS - 1:03}")[0]["texts"]
    assert seen == [message["content"] for message in history[:-1]]


def test_a_named_session_supplies_the_history(server: Server) -> None:
    named = {SESSION: "chat-named"}
    system = {"role": "system", "content": "Be kind."}
    first = complete(server, [system, user("named one")], headers=named)
    invented = [user("never asked"), {"role": "assistant", "content": "never answered"}]
    answer = post(server, [system, *invented, user("named two")], headers=named)
    assert answer.headers[SESSION] == "chat-named"
    assert "messages before messages[3]" in answer.headers["x-hermes-ignored"]
    [seen] = [call for call in server.model_calls("named two") if call["event"] == "started"]
    assert seen["texts"] == ["named one", first["choices"][0]["message"]["content"], "named two"]
    assert seen["instructions"] == "Be kind."
    third = complete(server, [user("named three")], headers=named)
    assert "Be kind." in third["choices"][0]["message"]["content"], "inherited along the session"


def test_a_named_session_takes_the_answers_of_tools(server: Server) -> None:
    named = {SESSION: "chat-named-tools"}
    question = user("What is the weather?")
    made = complete(server, [question], tools=[WEATHER], headers=named)
    message = made["choices"][0]["message"]
    reported = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "foggy"}
    final = complete(server, [question, message, reported], tools=[WEATHER], headers=named)
    assert final["choices"][0]["message"]["content"] == "The result is foggy."
    empty = post(server, [question, message], headers=named)
    assert (empty.status_code, empty.json()["error"]["param"]) == (400, "messages")


def test_turns_of_a_named_session_run_one_at_a_time(server: Server) -> None:
    named = {SESSION: "chat-in-turn"}
    done: list[str] = []

    def ask(messages: Any) -> None:
        done.append(complete(server, messages, headers=named)["choices"][0]["message"]["content"])

    first = threading.Thread(target=ask, args=(scripted({"gate": "chat-in-turn"}, {"say": "chat first"}),))
    first.start()
    eventually(lambda: server.model_calls("chat-in-turn"))
    second = threading.Thread(target=ask, args=(scripted({"say": "chat second"}),))
    second.start()
    eventually(lambda: status_of(server, "chat second") == "queued", what="the second turn to wait")
    server.open_gate("chat-in-turn")
    first.join(20)
    second.join(20)
    assert done == ["chat first", "chat second"]


# -- clients that leave -----------------------------------------------------------------
def test_closing_the_stream_stops_a_completion_that_is_not_to_be_kept(server: Server) -> None:
    with streamed(server, scripted({"say": "chat-left "}, {"gate": "never"})) as (_, received):
        next(received)
        eventually(lambda: server.model_calls("chat-left"))
    eventually(lambda: [c for c in server.model_calls("chat-left") if c["event"] == "stopped"], 2, "the stop")
    eventually(lambda: status_of(server, "chat-left") == "cancelled")


def test_a_completion_with_store_goes_on_without_its_client(server: Server) -> None:
    asked = scripted({"say": "chat-kept "}, {"gate": "chat-kept"}, {"say": "to the end"})
    with streamed(server, asked, store=True) as (_, received):
        first = next(received).decode()
    kept = first.split('"id":"')[1].split('"')[0]
    running = server.openai().chat.completions.retrieve(kept)
    assert running.choices[0].to_dict()["finish_reason"] is None
    server.open_gate("chat-kept")
    assert text(server.ended(response_id(kept))) == "chat-kept to the end"
    found = server.openai().chat.completions.retrieve(kept)
    assert found.choices[0].message.content == "chat-kept to the end"
    assert found.choices[0].finish_reason == "stop"


def test_a_completion_without_store_leaves_no_content_only_with_the_header(server: Server) -> None:
    secret = "indigo-armadillo"
    made = complete(server, [user(f"{secret} calculate 2+2")], store=False, stop="zzz", user=secret)
    stored = stored_rows(server, "response", "request", "output", "context_hash", id=response_id(made["id"]))
    assert stored == [("{}", None, "")]
    assert ids_with_input(server, secret) == []
