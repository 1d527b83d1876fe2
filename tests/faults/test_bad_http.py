"""What is not even HTTP is answered like any other mistake: a 4xx in JSON that says what is wrong."""

import signal
from contextlib import ExitStack

import pytest

from tests.support.raw_http import (
    FORM_HEAD,
    HEAD,
    Answer,
    connected,
    exchange,
    read_all,
    read_answer,
)
from tests.support.server import Server

pytestmark = pytest.mark.any_database

BURST = 300
MALFORMED: dict[str, tuple[bytes, int, str, str | None]] = {
    "no-version": (b"GET /health\r\n\r\n", 400, "malformed_request", None),
    "garbage": (b"\x16\x03\x01\x02\x00\r\n\r\n", 400, "malformed_request", None),
    "two-blank-lines": (b"\r\n\r\n", 400, "malformed_request", None),
    "unknown-version": (b"GET /health HTTP/2.0\r\nHost: localhost\r\n\r\n", 400, "malformed_request", None),
    "space-in-path": (b"GET /a b HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, "malformed_request", None),
    "bad-method": (b"G@T /health HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, "malformed_request", None),
    "non-ascii-path": ("GET /ü HTTP/1.1\r\nHost: localhost\r\n\r\n".encode(), 400, "malformed_request", None),
    "low-non-ascii-path": (b"GET /\x85 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, "malformed_request", None),
    "low-non-ascii-query": (b"GET /health?\x85 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, "malformed_request", None),
    "no-colon": (HEAD + b"Nonsense\r\n\r\n", 400, "malformed_request", None),
    "no-colon-then-more": (HEAD + b"Nonsense\r\nAccept: a\r\nAccept: b\r\n\r\n", 400, "malformed_request", None),
    "bad-header-name": (HEAD + b"Bad Name: x\r\n\r\n", 400, "malformed_request", None),
    "odd-header-name": (HEAD + b"Bad(Name: x\r\n\r\n", 400, "malformed_request", None),
    "nul-in-header": (HEAD + b"X-Nul: a\x00b\r\n\r\n", 400, "malformed_request", None),
    "control-in-header": (HEAD + b"X-Control: a\x0bb\r\n\r\n", 400, "malformed_request", None),
    "length-text": (HEAD + b"Content-Length: ten\r\n\r\n", 400, "malformed_request", "Content-Length"),
    "length-empty": (HEAD + b"Content-Length:\r\n\r\n", 400, "malformed_request", "Content-Length"),
    "length-negative": (HEAD + b"Content-Length: -1\r\n\r\n", 400, "malformed_request", "Content-Length"),
    "length-signed": (HEAD + b"Content-Length: +2\r\n\r\n{}", 400, "malformed_request", "Content-Length"),
    "length-list": (HEAD + b"Content-Length: 2, 2\r\n\r\n{}", 400, "malformed_request", "Content-Length"),
    "length-twice": (
        HEAD + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
        400,
        "malformed_request",
        "Content-Length",
    ),
    "length-and-chunks": (
        HEAD + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
        "malformed_request",
        "Transfer-Encoding",
    ),
    "chunks-and-length": (
        HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n",
        400,
        "malformed_request",
        "Content-Length",
    ),
    "unknown-encoding": (
        HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        400,
        "malformed_request",
        "Transfer-Encoding",
    ),
    "bad-chunk-size": (FORM_HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400, "malformed_request", None),
    "bad-chunk-end": (FORM_HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}xx", 400, "malformed_request", None),
    "endless-chunk-size": (
        FORM_HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"1" * 5000,
        400,
        "malformed_request",
        None,
    ),
    "long-uri": (b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 414, "uri_too_long", None),
    "endless-uri": (b"GET /" + b"a" * 20_000, 414, "uri_too_long", None),
    "long-header": (HEAD + b"X-Long: " + b"a" * 20_000 + b"\r\n\r\n", 431, "headers_too_large", None),
    "much-header": (HEAD + b"X-Some: %s\r\n" % (b"a" * 4000) * 5 + b"\r\n", 431, "headers_too_large", None),
    "many-headers": (HEAD + b"".join(b"X-%d: 1\r\n" % n for n in range(501)) + b"\r\n", 431, "headers_too_large", None),
    "no-host": (b"GET /health HTTP/1.1\r\n\r\n", 400, "invalid_host", "Host"),
    "bad-host": (b"GET /health HTTP/1.1\r\nHost: a b\xff\r\n\r\n", 400, "invalid_host", "Host"),
    "two-hosts": (
        b"GET /health HTTP/1.1\r\nHost: evil.example\r\nHost: localhost\r\n\r\n",
        400,
        "invalid_host",
        "Host",
    ),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_request_is_a_4xx_in_json(server: Server, name: str) -> None:
    request, status, code, param = MALFORMED[name]
    answer = exchange(server, request)
    assert answer.status == status, answer
    error = answer.error()
    assert (error["type"], error["code"], error["param"]) == ("invalid_request_error", code, param)


def test_a_refusal_ends_the_connection_and_nothing_behind_it_is_taken(server: Server) -> None:
    with connected(server) as connection:
        connection.sendall(HEAD + b"Content-Length: ten\r\n\r\n" + b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answer = read_answer(connection)
        assert answer.headers["connection"] == "close"
        assert connection.recv(100) == b""


def test_a_refusal_carries_the_request_id_of_the_client(server: Server) -> None:
    request_id = b"X-Request-ID: mine-1\r\n"
    assert exchange(server, HEAD + request_id + b"Nonsense\r\n\r\n").headers["x-request-id"] == "mine-1"
    low = b"GET /\x85 HTTP/1.1\r\nHost: localhost\r\n" + request_id + b"\r\n"
    assert exchange(server, low).headers["x-request-id"] == "mine-1"


def test_a_malformed_request_behind_a_good_one_spoils_only_itself(server: Server) -> None:
    with connected(server) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\nnonsense\r\n\r\n")
        received = read_all(connection)
    assert received.count(b"HTTP/1.1 ") == 2
    assert received.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b'"code":"malformed_request"' in received


def test_a_burst_of_connections_waits_for_a_busy_server(server: Server) -> None:
    """The kernel refuses a connection when the backlog is full; a stopped server accepts none."""
    assert server.process is not None
    server.process.send_signal(signal.SIGSTOP)
    try:
        with ExitStack() as stack:
            for _ in range(BURST):
                stack.enter_context(connected(server))
    finally:
        server.process.send_signal(signal.SIGCONT)


MULTIPART = {
    "no-boundary": (b"multipart/form-data", b"x"),
    "broken": (b"multipart/form-data; boundary=b", b"--b\r\nnonsense"),
    "whole": (
        b"multipart/form-data; boundary=b",
        b'--b\r\nContent-Disposition: form-data; name="input"\r\n\r\nhi\r\n--b--\r\n',
    ),
    "urlencoded": (b"application/x-www-form-urlencoded", b"input=hi"),
}


@pytest.mark.parametrize("name", MULTIPART)
def test_a_form_reaches_the_application_which_wants_json(server: Server, name: str) -> None:
    kind, body = MULTIPART[name]
    answer = _post(server, b"/v1/responses", kind, body)
    assert (answer.status, answer.error()["code"]) == (400, "invalid_json")
    answer = _post(server, b"/v1/conversations", kind, body)
    assert (answer.status, answer.error()["code"]) == (400, "invalid_json")


def test_a_form_is_json_if_its_body_is(server: Server) -> None:
    answer = _post(server, b"/v1/responses", b"multipart/form-data", b'{"input": "hi"}')
    assert answer.status == 200, answer


def test_a_root_path_is_not_taken_from_a_client(server: Server) -> None:
    for value in (b"/v1", "/ü".encode()):
        request = b"GET /health HTTP/1.1\r\nHost: localhost\r\nDaphne-Root-Path: %s\r\n\r\n"
        assert exchange(server, request % value).status == 200


@pytest.mark.parametrize("target", [b"*", b"localhost:80", b"http://localhost/nothing", b"//", b"/%ff", b"/%zz"])
def test_odd_targets_are_not_found(server: Server, target: bytes) -> None:
    answer = exchange(server, b"OPTIONS %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % target)
    assert 400 <= answer.status < 500
    answer.error()


HANDSHAKE = (
    b"Host: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


def test_a_websocket_is_refused_by_its_handshake(server: Server) -> None:
    for path, status, code in ((b"v1/responses", 401, "invalid_api_key"), (b"nowhere", 404, "unknown_path")):
        refused = exchange(server, b"GET /%s HTTP/1.1\r\n" % path + HANDSHAKE)
        assert (refused.status, refused.error()["code"]) == (status, code)


@pytest.mark.parametrize("missing", [b"Host", b"Sec-WebSocket-Version", b"Sec-WebSocket-Key"])
def test_half_a_websocket_handshake_is_a_plain_request(server: Server, missing: bytes) -> None:
    headers = [line for line in HANDSHAKE.splitlines(keepends=True) if not line.startswith(missing)]
    answer = exchange(server, b"GET /nowhere HTTP/1.1\r\n" + b"".join(headers))
    assert answer.error()["code"] == ("invalid_host" if missing == b"Host" else "unknown_path")


@pytest.mark.parametrize("broken", [(b"Version: 13", b"Version: 99"), (b"dGhlIHNhbXBsZSBub25jZQ==", b"short")])
def test_a_broken_websocket_handshake_is_a_plain_request(server: Server, broken: tuple[bytes, bytes]) -> None:
    answer = exchange(server, b"GET /nowhere HTTP/1.1\r\n" + HANDSHAKE.replace(*broken))
    assert answer.error()["code"] == "unknown_path"


def test_a_post_is_no_websocket_handshake(server: Server) -> None:
    answer = exchange(server, b"POST /nowhere HTTP/1.1\r\nContent-Length: 2\r\n" + HANDSHAKE + b"{}")
    assert answer.error()["code"] == "unknown_path"


def _post(server: Server, path: bytes, kind: bytes, body: bytes) -> Answer:
    head = b"POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: %s\r\n"
    length = b"Content-Length: %d\r\n\r\n" % len(body)
    return exchange(server, head % (path, server.key.encode(), kind) + length + body)
