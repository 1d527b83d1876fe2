"""A body over the limit is refused before it costs memory or disk, and its sender can read why."""

import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.migrated_database import Database
from tests.support.raw_http import (
    FORM_HEAD,
    HEAD,
    Answer,
    authorized_head,
    connected,
    exchange,
    open_files,
    open_sockets,
    read_all,
    read_answer,
    resident_bytes,
)
from tests.support.server import Server, eventually

pytestmark = pytest.mark.any_database

LIMIT = 10_000_000
IDLE_SECS = 1.0
MEGABYTE = bytes(1_000_000)


@pytest.fixture(scope="module")
def impatient(database: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("impatient") / "home"
    running = database.server(home, Server, TEST_IDLE_SECS=str(IDLE_SECS)).start()
    yield running
    running.kill()


def assert_too_large(answer: Answer) -> None:
    assert answer.status == 413, answer
    error = answer.error()
    assert (error["type"], error["code"], error["param"]) == ("invalid_request_error", "body_too_large", None)
    assert answer.headers["connection"] == "close"


@pytest.mark.parametrize("length", [LIMIT + 1, 10**15, int("9" * 4000)], ids=["one-more", "petabyte", "absurd"])
def test_a_declared_length_over_the_limit_is_refused_before_the_body(server: Server, length: int) -> None:
    assert_too_large(exchange(server, HEAD + b"Content-Length: %b\r\n\r\n" % str(length).encode()))


def test_a_client_that_waits_for_100_continue_is_refused(server: Server) -> None:
    expecting = authorized_head(server) + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n"
    with connected(server) as connection:
        connection.sendall(expecting % (LIMIT + 1))
        received = read_all(connection)
    assert received.startswith(b"HTTP/1.1 413 ")
    with connected(server) as connection:
        connection.sendall(expecting % 2)
        assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"


def test_who_sends_the_whole_body_all_the_same_can_read_the_refusal(server: Server) -> None:
    """Sent in one piece, without a look at what comes back, as simple clients do."""
    with connected(server) as connection:
        connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % (40 * len(MEGABYTE)))
        for _ in range(40):
            connection.sendall(MEGABYTE)
        assert_too_large(read_answer(connection))


def test_curl_reads_the_refusal(server: Server, tmp_path: Path) -> None:
    (tmp_path / "body").write_bytes(MEGABYTE * 40)
    key = ["-H", f"Authorization: Bearer {server.key}"]
    for extra in ([], ["-H", "Transfer-Encoding: chunked"], ["-H", "Expect:"]):
        command = ["curl", "-s", "-w", "%{http_code}", *key, *extra, "--data-binary", f"@{tmp_path / 'body'}"]
        done = subprocess.run([*command, f"{server.url}/v1/responses"], capture_output=True, text=True, timeout=60)
        assert done.stdout.endswith("413"), done
        assert '"code":"body_too_large"' in done.stdout


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def test_a_chunked_body_is_cut_as_soon_as_it_is_too_long(server: Server) -> None:
    with connected(server) as connection:
        connection.sendall(authorized_head(server) + b"Transfer-Encoding: chunked\r\n\r\n")
        for _ in range(10):
            connection.sendall(chunk(MEGABYTE))
        connection.sendall(chunk(b"x"))  # no end of the body: nothing but the limit can end this request
        assert_too_large(read_answer(connection))


@pytest.mark.parametrize("size", [LIMIT - 1, LIMIT])
def test_a_body_at_the_limit_reaches_the_application(server: Server, size: int) -> None:
    body = b'{"input": 5' + b" " * (size - 12) + b"}"
    authorized = authorized_head(server)
    declared = exchange(server, authorized + b"Content-Length: %d\r\n\r\n" % size + body)
    chunked = exchange(server, authorized + b"Transfer-Encoding: chunked\r\n\r\n" + chunk(body) + b"0\r\n\r\n")
    assert [answer.error()["param"] for answer in (declared, chunked)] == ["input", "input"]


def test_a_flood_costs_neither_memory_nor_disk(make_server: Callable[..., Server]) -> None:
    server = make_server()
    before = resident_bytes(server)
    with connected(server) as connection:
        connection.sendall(authorized_head(server) + b"Transfer-Encoding: chunked\r\n\r\n")
        for _ in range(9):
            connection.sendall(chunk(MEGABYTE))
        deleted = [path for path in open_files(server) if "deleted" in path]
        temporary = [path for path in deleted if not path.startswith("/memfd:")]  # that is memory
        for _ in range(200):
            connection.sendall(chunk(MEGABYTE))
        assert_too_large(read_answer(connection))
    assert temporary == []
    assert resident_bytes(server) - before < 3 * LIMIT


def test_a_second_refusal_is_not_sent(server: Server) -> None:
    with connected(server) as connection:
        connection.sendall(HEAD + b"Content-Length: 99999999\r\n\r\n" + b"nonsense\r\n\r\n" * 1000)
        assert read_all(connection).count(b"HTTP/1.1 ") == 1


def test_a_refused_connection_that_is_never_closed_does_not_stay(make_server: Callable[..., Server]) -> None:
    server = make_server()
    before = open_sockets(server)
    with connected(server) as connection:
        connection.sendall(b"nonsense\r\n\r\n")
        assert b"malformed_request" in read_all(connection)
        eventually(lambda: open_sockets(server) <= before, what="the close of the server's end")


@pytest.mark.parametrize(
    "begun",
    [
        b"POST /v1/resp",
        HEAD,
        FORM_HEAD + b"Content-Length: 9\r\n\r\n{",
        FORM_HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{",
    ],
    ids=["line", "headers", "body", "chunk"],
)
def test_a_client_that_stops_within_a_request_gets_an_error(impatient: Server, begun: bytes) -> None:
    answer = exchange(impatient, begun)
    assert (answer.status, answer.error()["code"]) == (408, "request_timeout")
    assert answer.headers["connection"] == "close"


def test_a_kept_connection_without_a_request_is_closed_without_a_word(impatient: Server) -> None:
    with connected(impatient) as connection:
        assert read_all(connection) == b""
    with connected(impatient) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert read_all(connection).count(b"HTTP/1.1 ") == 1


def test_a_slow_upload_is_not_a_silent_one(impatient: Server) -> None:
    with connected(impatient) as connection:
        connection.sendall(authorized_head(impatient) + b"Content-Length: 8\r\n\r\n")
        for _ in range(8):
            time.sleep(IDLE_SECS / 3)  # the client's own pace
            connection.sendall(b"x")
        assert read_answer(connection).error()["code"] == "invalid_json"
