"""A message of a platform is stored, answered in its chat's session, and the reply is sent."""

from tests.support.approvals import decide, until_parked
from tests.support.hermes_client import post
from tests.support.platforms import (
    deliver,
    inbox_row,
    lines,
    message,
    outbox,
    outbox_row,
    response_of,
    sent,
    until_sent,
    until_status,
    write,
)
from tests.support.server import Server, eventually, script
from tests.support.session_client import read_messages, read_session


def test_a_message_is_answered_in_the_session_of_its_chat(chatty: Server) -> None:
    write(chatty, "one-1", script({"say": "Hello Anna."}), chat="one")
    assert until_sent(chatty, 1, "one") == ["Hello Anna."]
    write(chatty, "one-2", script({"say": "Hello again."}), chat="one")
    assert until_sent(chatty, 2, "one") == ["Hello Anna.", "Hello again."]
    session = read_session(chatty, "fake:one")
    assert session["source"] == "fake"
    assert [entry["role"] for entry in read_messages(chatty, "fake:one")] == ["user", "assistant"] * 2


def test_a_repeated_message_is_answered_once(chatty: Server) -> None:
    again = message("again-1", script({"say": "Once."}), "again")
    stored = [deliver(chatty, again).json()["stored"] for _ in range(10)]
    assert stored == [1] + [0] * 9
    until_sent(chatty, 1, "again")
    write(chatty, "again-2", script({"say": "Next."}), chat="again")
    assert until_sent(chatty, 2, "again") == ["Once.", "Next."]


def test_what_was_sent_is_noted_with_the_platform_s_id_and_no_text_is_kept_twice(chatty: Server) -> None:
    write(chatty, "noted-1", script({"say": "Noted."}), chat="noted")
    until_sent(chatty, 1, "noted")
    response_id = response_of(chatty, "noted-1")
    key = f"{response_id}:end:0"
    until_status(chatty, key, "sent")
    line = next(line for line in lines(chatty) if line["chat"] == "noted" and "sent" in line)
    assert outbox_row(chatty, key) == [("sent", "", line["sent"])]
    assert (key, "sent", "") in outbox(chatty)
    assert inbox_row(chatty, "noted-1") == [("admitted", "", "")]


def test_a_failed_turn_sends_a_short_message(chatty: Server) -> None:
    write(chatty, "fail-1", script({"fail": "the secret reason"}), chat="fail")
    assert until_sent(chatty, 1, "fail") == ["⚠ That did not work (server_error). Send the message again to retry."]


def test_a_cancelled_turn_sends_what_there_is_and_says_so(chatty: Server) -> None:
    write(chatty, "stop-1", script({"say": "Half an answer"}, {"gate": "never-stop"}), chat="stop")
    response_id = response_of(chatty, "stop-1")
    eventually(lambda: chatty.body(response_id)["output"], what="the first output")
    assert post(chatty, f"/v1/responses/{response_id}/cancel", {}).status_code == 200
    assert until_sent(chatty, 1, "stop") == ["Half an answer\n\n⏹ Stopped."]


def test_a_turn_that_is_deleted_while_it_runs_sends_nothing_of_its_content(chatty: Server) -> None:
    write(chatty, "erased-1", script({"say": "A secret."}, {"gate": "never-erased"}), chat="erased")
    response_id = response_of(chatty, "erased-1")
    eventually(lambda: chatty.body(response_id)["output"], what="the first output")
    with chatty.http() as client:
        assert client.delete(f"/v1/responses/{response_id}").status_code == 200
    assert until_sent(chatty, 1, "erased") == ["⏹ Stopped."]


def test_a_cut_turn_says_why(chatty: Server) -> None:
    write(chatty, "cut-1", script({"say": "As far as"}, {"fail": "x", "code": "upstream_cut"}), chat="cut")
    assert "As far as" in until_sent(chatty, 1, "cut")[0]


def test_a_turn_that_waits_for_an_approval_says_so_once_and_answers_later(chatty: Server) -> None:
    write(chatty, "wait-1", script({"call": "guarded", "arguments": {"text": "it"}}, {"say": " Done."}), chat="wait")
    response_id = response_of(chatty, "wait-1")
    assert until_sent(chatty, 1, "wait") == ["⏳ guarded needs an approval. An operator decides; the answer follows."]
    until_parked(chatty, response_id)
    assert decide(chatty, response_id, "once").status_code == 200
    assert len(until_sent(chatty, 2, "wait")) == 2
    assert "Done." in sent(chatty, "wait")[1]


def test_the_terminal_is_not_among_the_default_tools(chatty: Server) -> None:
    write(chatty, "tools-1", "hello", chat="tools")
    until_sent(chatty, 1, "tools")
    tools = chatty.body(response_of(chatty, "tools-1"))["tools"]
    assert tools[0]["server_label"] == "hermes"
    assert "calculate" in tools[0]["allowed_tools"]
    assert "terminal" not in tools[0]["allowed_tools"]


def test_nothing_waits_in_the_outbox_in_the_end(chatty: Server) -> None:
    eventually(lambda: {row[1] for row in outbox(chatty)} <= {"sent"}, what="an empty outbox")
