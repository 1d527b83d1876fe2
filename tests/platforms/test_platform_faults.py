"""Processes die and platforms misbehave: no message is lost, and none is answered twice."""

import signal
import threading
from collections.abc import Callable
from contextlib import suppress

import httpx
import pytest

from tests.support.platforms import (
    deliver,
    fake_config,
    hold,
    let_go,
    lines,
    message,
    outbox,
    response_of,
    sent,
    until_sent,
    write,
)
from tests.support.server import Server, eventually, script
from tests.support.stored_rows import count_rows, stored_rows

Configured = Callable[..., Server]


def test_a_process_that_dies_before_it_stored_a_message_gets_it_again(configured_server: Configured) -> None:
    server = configured_server(fake_config()).start()
    hold(server, "receive")
    given = message("m1", script({"say": "Here."}))
    refused = []

    def attempt() -> None:
        with suppress(httpx.TransportError):
            refused.append(deliver(server, given).status_code)

    client = threading.Thread(target=attempt)
    client.start()
    with pytest.raises(AssertionError):
        eventually(lambda: refused, 0.3)  # no 200 before the message is stored
    server.kill()
    client.join(30)
    let_go(server, "receive")
    server.start()
    assert count_rows(server, "inboxmessage") == 0
    assert deliver(server, given).json()["stored"] == 1
    assert until_sent(server, 1) == ["Here."]


def test_a_process_that_dies_between_the_end_of_the_turn_and_the_send_sends_after_its_restart(
    configured_server: Configured,
) -> None:
    server = configured_server(fake_config(), TEST_SENDING_SECS="1").start()
    hold(server, "send")
    write(server, "m1", script({"say": "Settled."}))
    eventually(lambda: [row for row in outbox(server) if row[1] == "sending"], what="the claim of the message")
    server.kill()
    let_go(server, "send")
    assert sent(server) == []
    server.start()
    assert until_sent(server, 1) == ["Settled."]
    eventually(lambda: {row[1] for row in outbox(server)} == {"sent"}, what="the note of it")
    assert sent(server) == ["Settled."]


def test_the_window_between_the_send_and_its_note_repeats_the_message_with_the_same_key(
    configured_server: Configured,
) -> None:
    """The one that no server can close: the platform has the message, and the process could not note that."""
    server = configured_server(fake_config(), TEST_SENDING_SECS="1").start()
    hold(server, "mark")
    write(server, "m1", script({"say": "Twice."}))
    until_sent(server, 1)
    server.kill()
    let_go(server, "mark")
    server.start()
    assert until_sent(server, 2) == ["Twice.", "Twice."]
    assert len({line["key"] for line in lines(server) if "sent" in line}) == 1
    assert len({response_of(server, "m1")}) == 1


@pytest.mark.any_database
def test_a_turn_that_crashed_too_often_says_so(configured_server: Configured) -> None:
    server = configured_server(fake_config(), HERMES_MAX_ATTEMPTS="1").start()
    write(server, "m1", script({"say": "So far"}, {"gate": "never"}))
    response_id = response_of(server, "m1")
    eventually(lambda: server.body(response_id)["output"], what="the first output")
    server.kill()
    server.start()
    assert until_sent(server, 1) == ["So far\n\n⚠ The answer ends here (server_interrupted)."]


@pytest.mark.any_database
def test_a_turn_that_a_command_settles_is_answered_at_the_next_start(configured_server: Configured) -> None:
    server = configured_server(fake_config()).start()
    write(server, "m1", script({"gate": "never"}))
    response_id = response_of(server, "m1")
    eventually(lambda: stored_rows(server, "response", "id", attempt=1), what="the claim")
    server.kill()
    server.manage("recover_responses", "--settle")
    assert [row[0] for row in outbox(server)] == [f"{response_id}:end:0"]
    server.start()
    assert until_sent(server, 1) == ["⚠ The answer ends here (server_interrupted)."]


@pytest.mark.any_database
def test_limits_are_waited_for_and_messages_that_come_in_disorder_are_answered_in_order(
    configured_server: Configured,
) -> None:
    server = configured_server(fake_config()).start()
    hold(server, "limits", "2")
    later = message("m2", script({"say": "Second."}), at=2_000_000_002)
    earlier = message("m1", script({"say": "First."}), at=2_000_000_001)
    for _ in range(10):
        assert deliver(server, later, earlier, later).status_code == 200
    assert until_sent(server, 2, secs=40) == ["First.", "Second."]
    attempts = stored_rows(server, "outboxmessage", "attempts")
    assert sum(count for (count,) in attempts) == 4
    assert stored_rows(server, "platformstate", "error") == [("The platform answered 429.",)]


@pytest.mark.any_database
def test_a_reply_that_ends_within_the_grace_of_a_shutdown_is_sent_before_it(configured_server: Configured) -> None:
    server = configured_server(fake_config(), HERMES_SHUTDOWN_GRACE="20").start()
    write(server, "m1", script({"gate": "grace"}, {"say": "Just in time."}))
    write(server, "m2", script({"gate": "grace"}, {"say": "And this."}), chat="bob")
    for name in ("m1", "m2"):
        response_of(server, name)
    eventually(lambda: count_rows(server, "response", attempt=1) == 2, what="the claims of the turns")
    hold(server, "send")
    assert server.process is not None
    server.process.send_signal(signal.SIGTERM)
    eventually(lambda: "Shutting down" in server.log, what="the shutdown")
    server.open_gate("grace")
    eventually(lambda: [row[1] for row in outbox(server)] == ["sending"] * 2, what="the claims of the messages")
    let_go(server, "send")
    server.process.wait(30)
    assert (sent(server), sent(server, "bob")) == (["Just in time."], ["And this."])
    assert [row[1] for row in outbox(server)] == ["sent"] * 2


@pytest.mark.any_database
def test_a_turn_is_answered_though_its_chat_has_another_owner_since(configured_server: Configured) -> None:
    server = configured_server(fake_config()).start()
    write(server, "m1", script({"gate": "owner"}, {"say": "Of the old owner."}))
    response_of(server, "m1")
    server.kill()
    server.manage("createkey", "bob")
    (server.home / "config.yaml").write_text(fake_config(owner="bob"))
    server.start()
    write(server, "m2", script({"say": "Of the new owner."}))
    until_sent(server, 1)
    server.open_gate("owner")
    assert until_sent(server, 2) == ["Of the new owner.", "Of the old owner."]
