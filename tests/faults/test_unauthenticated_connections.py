"""What a client without a key can take from the server: little memory, and no connection for ever."""

import re
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress

import pytest

from tests.support.migrated_database import Database
from tests.support.people import create_key
from tests.support.raw_http import (
    FORM_HEAD,
    HEAD,
    connected,
    exchange,
    open_sockets,
    read_all,
    read_answer,
    resident_bytes,
)
from tests.support.server import Server, eventually
from tests.support.websockets import socket as websocket

pytestmark = pytest.mark.any_database

MEGABYTE = bytes(1_000_000)
API_PATHS = (
    b"/v1/responses",
    b"/v1/responses/compact",
    b"/v1/responses/input_tokens?x=1",
    b"/v1/responses/resp_1/cancel",
    b"/v1/chat/completions",
    b"/v1/conversations",
    b"/v1/runs",
    b"/api/sessions",
    b"/api/sessions/some/chat/stream",
)
UNSENT_BODIES = (b"Content-Length: 9000000\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n")
WRONG_KEYS = (b"", b"Authorization: Bearer wrong\r\n", b"Authorization: Basic cm9vdDo=\r\n")
DEADLINE_SECS = 1.0
DRIP_SECS = 0.1
HELD_BYTES = 32_000_000  # by all clients without a key together
SMALL = b'{"input": "hello", "store": false}'


@pytest.fixture(scope="module")
def impatient(database: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("impatient") / "home"
    limits = {"TEST_HEAD_SECS": str(DEADLINE_SECS), "TEST_BODY_SECS": str(DEADLINE_SECS)}
    running = database.server(home, Server, **limits).start()
    yield running
    running.kill()


def post(path: bytes, *headers: bytes) -> bytes:
    return b"POST %b HTTP/1.1\r\nHost: localhost\r\n" % path + b"".join(headers)


def bearer(key: str) -> bytes:
    return b"Authorization: Bearer %b\r\n" % key.encode()


def sized(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


# -- the key is checked before the body -------------------------------------------------
@pytest.mark.parametrize("path", API_PATHS)
def test_a_wrong_key_is_refused_before_the_body(server: Server, path: bytes) -> None:
    for key in WRONG_KEYS:
        for unsent in UNSENT_BODIES:
            answer = exchange(server, post(path, key, unsent))
            assert (answer.status, answer.error()["code"]) == (401, "invalid_api_key")
            assert answer.headers["www-authenticate"] == "Bearer"
            assert answer.headers["connection"] == "close"


def test_only_a_valid_key_is_asked_for_the_body(server: Server) -> None:
    expecting = b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n"
    assert exchange(server, post(b"/v1/responses", expecting)).status == 401
    for key in (server.key, create_key(server, "expecting")):
        with connected(server) as connection:
            connection.sendall(post(b"/v1/responses", bearer(key), expecting))
            assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"


def test_what_else_is_wrong_with_the_head_comes_first(server: Server) -> None:
    elsewhere = b"POST /v1/responses HTTP/1.1\r\nHost: evil.example\r\n"
    assert exchange(server, elsewhere + UNSENT_BODIES[0]).error()["code"] == "invalid_host"
    packed = post(b"/v1/responses", b"Content-Encoding: gzip\r\n", UNSENT_BODIES[0])
    assert exchange(server, packed).error()["code"] == "unsupported_encoding"


def test_a_key_that_is_revoked_during_the_upload_is_refused(server: Server) -> None:
    key = create_key(server, "revoked-upload")
    with connected(server) as connection:
        connection.sendall(post(b"/v1/responses", bearer(key), b"Content-Length: %d\r\n\r\n" % len(SMALL)))
        time.sleep(1.1)  # the client's own pace: the first check is old by then
        server.manage("revokekey", "revoked-upload")
        connection.sendall(SMALL)
        assert read_answer(connection).status == 401


def test_pipelined_and_kept_requests_are_answered_in_order(server: Server) -> None:
    key = create_key(server, "pipelined")
    chunked = b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(SMALL), SMALL)
    with connected(server) as connection:
        for _ in range(3):
            connection.sendall(post(b"/v1/responses", bearer(key), sized(SMALL)))
            assert read_answer(connection).status == 200
        connection.sendall(
            post(b"/v1/responses", bearer(key), sized(SMALL))
            + post(b"/v1/nothing", bearer(key), sized(SMALL))
            + post(b"/v1/responses", bearer(server.key), chunked)
            + b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
            + post(b"/v1/responses", sized(SMALL))
        )
        received = read_all(connection)
    statuses = re.findall(rb"HTTP/1.1 (\d+) ", received)
    assert statuses == [b"200", b"404", b"200", b"200", b"401"]


def test_a_body_in_pieces_arrives_whole(server: Server) -> None:
    with connected(server) as connection:
        connection.sendall(post(b"/v1/responses", bearer(create_key(server, "pieces"))))
        for piece in (b"Content-Length: %d\r\n" % len(SMALL), b"\r\n", SMALL[:9], SMALL[9:]):
            connection.sendall(piece)
            time.sleep(0.05)  # a segment of its own
        assert read_answer(connection).status == 200


def test_no_key_is_asked_for_where_authentication_is_off(make_server: Callable[..., Server]) -> None:
    server = make_server(HERMES_AUTH="off")
    assert exchange(server, post(b"/v1/responses", sized(SMALL))).status == 200


# -- memory -----------------------------------------------------------------------------
def flood(connection: socket.socket, head: bytes, megabytes: int) -> None:
    """As much as the server takes."""
    with suppress(OSError):
        connection.sendall(head)
        for _ in range(megabytes):
            connection.sendall(MEGABYTE)


def grow_at_most(most: int, server: Server, head: bytes, count: int, megabytes: int, refused: int) -> None:
    """The server's memory, once ``count`` clients have sent and so many are answered.

    The clients stay, and what the server frees behind a refusal may take a moment.
    """
    before = resident_bytes(server)
    with ExitStack() as stack:
        clients = [stack.enter_context(connected(server)) for _ in range(count)]
        senders = [threading.Thread(target=flood, args=(client, head, megabytes)) for client in clients]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        eventually(lambda: len(select.select(clients, [], [], 0)[0]) >= refused, what="the refusals")
        eventually(lambda: resident_bytes(server) - before < most, what="memory below the limit")


@pytest.mark.parametrize("count", [20, 100])
@pytest.mark.parametrize("key", WRONG_KEYS[:2], ids=["none", "wrong"])
def test_bodies_without_a_key_take_no_memory(make_server: Callable[..., Server], count: int, key: bytes) -> None:
    server = make_server()
    head = HEAD + key + b"Content-Length: 10000000\r\n\r\n"
    grow_at_most(30_000_000, server, head, count, megabytes=9, refused=count)


def test_forms_without_a_key_take_a_bounded_memory(make_server: Callable[..., Server]) -> None:
    server = make_server()
    chunked = FORM_HEAD + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % 990_000
    grow_at_most(3 * HELD_BYTES, server, chunked + bytes(980_000), 200, megabytes=0, refused=160)
    form = FORM_HEAD + sized(bytes(900_000))
    eventually(lambda: exchange(server, form).status != 503, what="room for a form")


def test_a_form_over_a_megabyte_is_refused(server: Server) -> None:
    declared = exchange(server, FORM_HEAD + b"Content-Length: 1000001\r\n\r\n")
    with connected(server) as connection:
        connection.sendall(FORM_HEAD + b"Transfer-Encoding: chunked\r\n\r\nf4241\r\n" + bytes(1_000_001))
        chunked = read_answer(connection)
    for answer in (declared, chunked):
        assert (answer.status, answer.error()["code"]) == (413, "body_too_large")
        assert "1000000" in answer.error()["message"]


def test_beyond_the_budget_further_forms_are_refused(make_server: Callable[..., Server]) -> None:
    server = make_server(TEST_UNAUTHENTICATED_BYTES="1500000")
    with connected(server) as first, connected(server) as second:
        first.sendall(FORM_HEAD + b"Content-Length: 990000\r\n\r\n" + bytes(980_000))
        second.sendall(FORM_HEAD + b"Transfer-Encoding: chunked\r\n\r\nf0000\r\n" + bytes(980_000))
        ready, _, _ = select.select([first, second], [], [], 20)  # which of the two the server reads first is open
        refused = read_answer(ready[0])
    assert (refused.status, refused.error()["code"]) == (503, "too_many_unauthenticated_bytes")
    assert refused.headers["retry-after"]
    with server.http() as client:
        assert client.post("/v1/responses", content=SMALL).status_code == 200
    eventually(lambda: exchange(server, FORM_HEAD + sized(bytes(900_000))).status != 503, what="room for a form")


# -- deadlines --------------------------------------------------------------------------
def drip(connection: socket.socket, begun: bytes) -> None:
    """A byte now and then, until the server has something to send."""
    connection.sendall(begun)
    for _ in range(200):
        if select.select([connection], [], [], DRIP_SECS)[0]:
            return
        connection.sendall(b"x")
    raise AssertionError("the server waits for ever")


@pytest.mark.parametrize("begun", [b"POST /", HEAD + b"X-Long: "], ids=["line", "header"])
def test_a_head_that_drips_is_ended(impatient: Server, begun: bytes) -> None:
    with connected(impatient) as connection:
        drip(connection, begun)
        answer = read_answer(connection)
    assert (answer.status, answer.error()["code"]) == (408, "request_timeout")


@pytest.mark.parametrize(
    "length", [b"Content-Length: 9000\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\nffff\r\n"], ids=["sized", "chunked"]
)
def test_a_body_that_drips_is_ended(impatient: Server, length: bytes) -> None:
    for head in (HEAD + bearer(impatient.key), FORM_HEAD):
        with connected(impatient) as connection:
            drip(connection, head + length)
            answer = read_answer(connection)
        assert (answer.status, answer.error()["code"]) == (408, "request_timeout")


def test_deadlines_are_of_one_request_and_not_of_the_connection(impatient: Server) -> None:
    request = HEAD + bearer(impatient.key) + sized(SMALL)
    half = len(request) // 2
    with connected(impatient) as connection:
        for _ in range(4):
            connection.sendall(request[:half])
            time.sleep(DEADLINE_SECS / 3)  # the client's own pace
            connection.sendall(request[half:])
            assert read_answer(connection).status == 200


# -- the number of connections ----------------------------------------------------------
def test_one_connection_over_the_limit_is_refused(make_server: Callable[..., Server]) -> None:
    server = make_server(HERMES_MAX_CONNECTIONS="4")
    before = open_sockets(server)
    with ExitStack() as stack:
        kept = [stack.enter_context(connected(server)) for _ in range(3)]
        opened = stack.enter_context(websocket(server))
        with connected(server) as fifth:
            refused = read_answer(fifth)
        assert (refused.status, refused.error()["code"]) == (503, "too_many_connections")
        assert refused.headers["retry-after"]
        kept[0].sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert read_answer(kept[0]).status == 200
        assert opened.ask(input="hello")["type"] == "response.completed"
    eventually(lambda: open_sockets(server) <= before, what="the end of all connections")
    with ExitStack() as stack:
        for _ in range(4):
            connection = stack.enter_context(connected(server))
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert read_answer(connection).status == 200
