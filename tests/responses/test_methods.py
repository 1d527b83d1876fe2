"""Every route names its methods: in ``Allow``, to OPTIONS and beside a 405."""

import re
from typing import Any

import httpx
import pytest

from gateway_app.api.schema.document import document
from tests.support.raw_http import connected, read_all
from tests.support.server import Server

pytestmark = pytest.mark.any_database

ALL = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "TRACE")
# An id for each name in a path, of something that exists where a method reads it.
UNKNOWN = "nothing-of-this-name"


def routes() -> dict[str, set[str]]:
    """Path -> what it takes by the document, with what HTTP adds to it."""
    found: dict[str, set[str]] = {}
    for template, item in document()["paths"].items():
        methods = {method.upper() for method in item if method != "parameters"}
        head = {"HEAD"} if "GET" in methods else set()
        found[re.sub(r"\{\w+\}", UNKNOWN, template)] = methods | head | {"OPTIONS"}
    return found


def allowed(answer: httpx.Response) -> set[str]:
    return set(answer.headers["allow"].split(", "))


def test_options_names_the_methods_of_every_route_and_asks_for_no_key(server: Server) -> None:
    with httpx.Client(base_url=server.url) as stranger:
        for path, methods in routes().items():
            answer = stranger.options(path)
            assert (answer.status_code, answer.content) == (204, b""), path
            assert allowed(answer) == methods, path
            assert answer.headers["x-request-id"]


def test_any_other_method_is_a_405_that_names_them(server: Server) -> None:
    with server.http() as client:
        for path, methods in routes().items():
            for method in sorted(set(ALL) - methods):
                answer = client.request(method, path)
                assert answer.status_code == 405, (method, path)
                assert allowed(answer) == methods, (method, path)
                if method != "HEAD":
                    assert answer.json()["error"]["code"] == "method_not_allowed"


def test_head_is_get_without_its_body(server: Server) -> None:
    ids = existing(server)
    with server.http() as client:
        for template, item in document()["paths"].items():
            if "get" not in item:
                continue
            path = template.format(**ids)
            reported, whole = client.head(path), client.get(path)
            assert (reported.status_code, reported.content) == (whole.status_code, b""), path
            assert reported.status_code == 200, path
            assert reported.headers["content-type"] == whole.headers["content-type"], path


def existing(server: Server) -> dict[str, Any]:
    with server.http() as client:
        run = client.post("/v1/runs", json={"input": "x", "session_id": "head"}).json()
        server.ended(run["response_id"])
        items = [{"role": "user", "content": "x"}]
        conversation = client.post("/v1/conversations", json={"items": items}).json()["id"]
        listed = client.get(f"/v1/conversations/{conversation}/items").json()
        kept = {"messages": items, "store": True}
        completion = client.post("/v1/chat/completions", json=kept).json()["id"]
    made = {name: run[name] for name in ("run_id", "response_id", "session_id")}
    made |= {"conversation_id": conversation, "item_id": listed["first_id"]}
    return {**made, "completion_id": completion, "model": "hermes-agent", "platform": "fake"}


def test_an_unknown_path_stays_unknown_to_every_method(server: Server) -> None:
    with server.http() as client:
        for method in (*ALL, "OPTIONS"):
            assert client.request(method, "/v1/nothing").status_code == 404


def test_a_long_answer_to_head_has_no_body(server: Server) -> None:
    """Its bytes would be read as the answer to the next request of the connection."""
    head = "HEAD /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
    last = "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    with connected(server) as connection:
        connection.sendall((head + last).encode())
        answers = read_all(connection)
    first, _, second = answers.partition(b"\r\n\r\n")
    length = int(re.findall(rb"(?i)content-length: (\d+)", first)[0])
    assert length > 100_000
    assert second.startswith(b"HTTP/1.1 200")
