"""The errors of requests that never reach the application."""

from http import HTTPStatus

import orjson

from responses_app.http.middleware import common_headers
from responses_app.protocol.errors import (
    RETRY_AFTER_SECS,
    SERVER,
    ApiError,
    BodyTooLarge,
)

MALFORMED = "malformed_request"

BAD_REQUEST_LINE = ApiError(
    "The request does not begin with a line like 'GET /v1/models HTTP/1.1'. "
    "Send HTTP/1.1, with the path percent-encoded.",
    code=MALFORMED,
)
BAD_PATH = ApiError(
    "The path or query has characters outside ASCII. Percent-encode them as UTF-8.",
    code=MALFORMED,
)
BAD_HEADER = ApiError(
    "A header is not 'Name: value' with a name of letters, digits and dashes and a value without "
    "control characters. "
    "Correct the header and send the request again.",
    code=MALFORMED,
)
BAD_CONTENT_LENGTH = ApiError(
    "Content-Length must be one whole number, the count of the body's bytes. "
    "Let your HTTP client set it.",
    param="Content-Length",
    code=MALFORMED,
)
BAD_TRANSFER_ENCODING = ApiError(
    "Transfer-Encoding can only be 'chunked'. Send the body without any other encoding.",
    param="Transfer-Encoding",
    code=MALFORMED,
)
LENGTH_STATED_TWICE = (
    "The length of the body is stated more than once. "
    "Send one Content-Length or one 'Transfer-Encoding: chunked'."
)
BAD_CHUNK = ApiError(
    "The chunked body has a chunk that is not 'size in hex, CRLF, bytes, CRLF'. "
    "Let your HTTP client do it, or send a Content-Length.",
    code=MALFORMED,
)
URI_TOO_LONG = ApiError(
    "The request line is too long. Shorten the path and the query; put long values into the body.",
    status=HTTPStatus.REQUEST_URI_TOO_LONG,
    code="uri_too_long",
)
HEADERS_TOO_LARGE = ApiError(
    "The headers are too many or too long. Send fewer or shorter ones.",
    status=HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
    code="headers_too_large",
)
REQUEST_TIMEOUT = ApiError(
    "The rest of the request did not arrive in time. Send it again, whole.",
    status=HTTPStatus.REQUEST_TIMEOUT,
    code="request_timeout",
)


class TooManyConnections(ApiError):
    status = HTTPStatus.SERVICE_UNAVAILABLE
    type = SERVER
    code = "too_many_connections"
    headers = {"Retry-After": str(RETRY_AFTER_SECS)}

    def __init__(self, limit: int) -> None:
        super().__init__(f"{limit} connections are open. Connect again in a moment.")


class TooManyUnauthenticatedBytes(ApiError):
    status = HTTPStatus.SERVICE_UNAVAILABLE
    type = SERVER
    code = "too_many_unauthenticated_bytes"
    headers = {"Retry-After": str(RETRY_AFTER_SECS)}

    def __init__(self) -> None:
        super().__init__(
            "Too many bodies without a valid key are being read. Send this one again in a moment."
        )


class UnauthenticatedBodyTooLarge(BodyTooLarge):
    def __init__(self, limit_bytes: int) -> None:
        super().__init__(limit_bytes)
        self.message += " This is the limit without a valid key."


def length_stated_twice(header: str) -> ApiError:
    return ApiError(LENGTH_STATED_TWICE, param=header, code=MALFORMED)


def refusal_headers(request_headers: dict[bytes, bytes]) -> list[tuple[bytes, bytes]]:
    return [(b"content-type", b"application/json"), *common_headers(request_headers)]


def as_http(error: ApiError, request_headers: dict[bytes, bytes], server_name: str) -> bytes:
    """A whole response, after which the connection ends."""
    headers = refusal_headers(request_headers)
    for name, value in error.headers.items():
        if name.lower() != "connection":
            headers.append((name.lower().encode(), value.encode()))
    return last_response(error.status, headers, orjson.dumps(error.body()), server_name)


def last_response(
    status: int, headers: list[tuple[bytes, bytes]], body: bytes, server_name: str
) -> bytes:
    """The bytes of the last response of a connection."""
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}".encode()]
    for name, value in headers:
        lines.append(name + b": " + value)
    lines.append(b"content-length: %d" % len(body))
    lines.append(b"connection: close")
    lines.append(b"server: " + server_name.encode())
    return b"\r\n".join(lines) + b"\r\n\r\n" + body
