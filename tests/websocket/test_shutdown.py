"""A WebSocket when the server stops: it is asked to come back, and nothing of its turn is lost."""

import signal
from collections.abc import Callable

import pytest
from websockets.exceptions import ConnectionClosed

from tests.support.checker import check_log
from tests.support.server import (
    Server,
    eventually,
    script,
    text,
)
from tests.support.websockets import Socket, socket

pytestmark = [pytest.mark.any_database, pytest.mark.fault]


def read_to_the_end(client: Socket) -> None:
    while True:
        assert client.receive()["type"] != "error"


def test_sockets_are_closed_as_by_a_restart_and_their_turns_go_on(make_server: Callable[..., Server]) -> None:
    server = make_server(HERMES_SHUTDOWN_GRACE="1")
    with socket(server) as busy, socket(server) as idle:
        busy.create(input=script({"say": "one "}, {"gate": "after the restart"}, {"say": "two"}))
        response_id = busy.receive()["response"]["id"]
        eventually(lambda: text(server.body(response_id)) == "one ", what="the first word")
        process = server.process
        assert process is not None
        process.send_signal(signal.SIGTERM)
        for client in (busy, idle):
            with pytest.raises(ConnectionClosed) as closed:
                read_to_the_end(client)
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1012
    server.kill()
    server.start()
    server.open_gate("after the restart")
    assert text(server.ended(response_id)) == "one two"
    check_log(server, response_id)
