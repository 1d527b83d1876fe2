"""Headers that two readers of one request could understand differently are refused."""

import pytest

from tests.support.raw_http import HEAD, exchange
from tests.support.server import Server

pytestmark = pytest.mark.any_database
JSON = b"Content-Type: application/json\r\n"
CHUNKED_BODY = b'\r\ne\r\n{"input":"hi"}\r\n0\r\n\r\n'


def bearer(secret: str | bytes) -> bytes:
    secret = secret.encode() if isinstance(secret, str) else secret
    return b"Authorization: Bearer " + secret + b"\r\n"


@pytest.mark.parametrize("request_line", [b"GET /v1/models", b"GET /v1/responses/resp_x?stream=true"])
@pytest.mark.parametrize("is_valid_first", [True, False])
def test_two_authorization_headers_are_refused(server: Server, request_line: bytes, is_valid_first: bool) -> None:
    pair = [bearer(server.key), bearer("wrong")]
    if not is_valid_first:
        pair.reverse()
    head = request_line + b" HTTP/1.1\r\nHost: localhost\r\n"
    answer = exchange(server, head + b"".join(pair) + b"\r\n")
    assert answer.status == 400
    error = answer.error()
    assert (error["code"], error["param"]) == ("duplicate_header", "Authorization")


@pytest.mark.parametrize("first", [b"identity", b"chunked"])
def test_two_transfer_encodings_are_refused(server: Server, first: bytes) -> None:
    encodings = b"Transfer-Encoding: " + first + b"\r\nTransfer-Encoding: chunked\r\n"
    answer = exchange(server, HEAD + bearer(server.key) + JSON + encodings + CHUNKED_BODY)
    assert answer.status == 400
    assert "Transfer-Encoding" in answer.error()["message"]


@pytest.mark.parametrize("secret", [b"\xa0", b"", b" \t "])
def test_a_key_of_spaces_is_no_key(server: Server, secret: bytes) -> None:
    answer = exchange(server, b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n" + bearer(secret) + b"\r\n")
    assert answer.status == 401


@pytest.mark.parametrize("name", ["X-Hermes-Session-Id", "X-Hermes-Session-Key", "Content-Type"])
def test_other_headers_of_one_meaning_come_once(server: Server, name: str) -> None:
    pair = f"{name}: application/json\r\n{name}: other\r\n".encode()
    head = b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n" + bearer(server.key)
    answer = exchange(server, head + pair + b"\r\n")
    assert (answer.status, answer.error()["param"]) == (400, name)


@pytest.mark.parametrize(
    ("version", "lines"),
    [
        (b"1.1", b"Transfer-Encoding: identity\r\n"),
        (b"1.0", b"Transfer-Encoding: chunked\r\n"),
        (b"1.1", b"Transfer-Encoding:\r\n chunked\r\n"),
    ],
)
def test_a_body_whose_end_a_proxy_may_see_elsewhere_is_refused(server: Server, version: bytes, lines: bytes) -> None:
    head = b"POST /v1/responses HTTP/" + version + b"\r\nHost: localhost\r\n"
    answer = exchange(server, head + bearer(server.key) + JSON + lines + CHUNKED_BODY)
    assert answer.status == 400
    answer.error()


def test_a_folded_header_is_refused(server: Server) -> None:
    head = b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer\r\n "
    answer = exchange(server, head + server.key.encode() + b"\r\n\r\n")
    assert answer.status == 400
