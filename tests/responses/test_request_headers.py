"""Headers that two readers of one request could understand differently are refused."""

import pytest

from tests.harness import Server
from tests.raw_http import HEAD, exchange

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
