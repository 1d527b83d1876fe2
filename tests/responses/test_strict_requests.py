"""Values that look like none, and addresses that name no host."""

from typing import Any

import httpx
import pytest

from gateway_app.api.schema.document import document
from tests.support.openapi_reader import Reader
from tests.support.server import Server

pytestmark = pytest.mark.any_database

PIXEL = "data:image/png;base64,iVBORw0KGgo="


def post(server: Server, path: str, body: Any) -> httpx.Response:
    with server.http() as client:
        return client.post(path, json=body)


def assert_refused(answer: httpx.Response, param: str | None) -> None:
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["param"] == param, answer.text


# -- queries ----------------------------------------------------------------------------
def is_text(schema: dict[str, Any]) -> bool:
    return schema.get("type") in ("string", "object") and "enum" not in schema


def test_an_empty_number_or_word_in_a_query_is_refused_by_name(server: Server) -> None:
    run = post(server, "/v1/runs", {"input": "x", "session_id": "empty-queries"}).json()
    made = post(server, "/v1/conversations", {}).json()["id"]
    ids = {name: run[name] for name in ("run_id", "response_id", "session_id")}
    kept = {"messages": [{"role": "user", "content": "x"}], "store": True}
    ids["completion_id"] = post(server, "/v1/chat/completions", kept).json()["id"]
    reader, tried = Reader(document()), set()
    with server.http() as client:
        for method, template, operation in reader.operations():
            for given in operation["parameters"]:
                parameter = reader.resolved(given)
                if parameter["in"] != "query" or is_text(parameter["schema"]):
                    continue
                path = template.format(conversation_id=made, **ids)
                answer = client.request(method, path, params={parameter["name"]: ""})
                assert_refused(answer, parameter["name"])
                tried.add((template, parameter["name"]))
    assert len(tried) > 18
    names = {name for _, name in tried}
    assert {"limit", "order", "status", "offset", "stream", "starting_after", "after"} <= names


def test_an_empty_cursor_of_a_stream_is_refused_and_an_empty_header_is_none(server: Server) -> None:
    made = post(server, "/v1/runs", {"input": "x"}).json()
    server.ended(made["response_id"])
    stream = f"/v1/responses/{made['response_id']}?stream=true"
    events = f"/v1/runs/{made['run_id']}/events"
    with server.http() as client:
        assert_refused(client.get(f"{stream}&starting_after="), "starting_after")
        assert_refused(client.get(f"{events}?after="), "after")
        for path in (stream, events):
            assert client.get(path, headers={"Last-Event-ID": ""}).status_code == 200


def test_a_wrong_header_is_refused_beside_a_cursor_in_the_query(server: Server) -> None:
    made = post(server, "/v1/runs", {"input": "x"}).json()
    server.ended(made["response_id"])
    stream = f"/v1/responses/{made['response_id']}?stream=true&starting_after=0"
    events = f"/v1/runs/{made['run_id']}/events?after=0"
    with server.http() as client:
        for path in (stream, events):
            assert_refused(client.get(path, headers={"Last-Event-ID": "x"}), "Last-Event-ID")
            assert client.get(path, headers={"Last-Event-ID": "99"}).status_code == 200


# -- bodies -----------------------------------------------------------------------------
NEEDED = ("/v1/responses/input_tokens", "/v1/responses", "/v1/runs", "/v1/chat/completions")
NOT_NEEDED = {"/v1/conversations": 200, "/api/sessions": 201, "/api/sessions/empty-body/fork": 201}


def test_no_body_is_a_400_where_one_is_needed(server: Server) -> None:
    post(server, "/api/sessions", {"id": "empty-body"})
    with server.http() as client:
        for path in NEEDED:
            answer = client.post(path, content=b"")
            assert_refused(answer, None)
            assert answer.json()["error"]["code"] == "invalid_body"
        assert_refused(client.patch("/api/sessions/empty-body", content=b""), None)
        for path, status in NOT_NEEDED.items():
            assert client.post(path, content=b"").status_code == status


def test_an_object_without_fields_is_a_body(server: Server) -> None:
    post(server, "/api/sessions", {"id": "no-fields"})
    with server.http() as client:
        assert client.patch("/api/sessions/no-fields", json={}).status_code == 200
        assert client.post("/v1/responses/input_tokens", json={}).status_code == 200


@pytest.mark.parametrize("entry", ["x", 5, None, ["x"], {"content": "x"}, {"role": "user"}])
def test_the_history_of_a_run_is_messages_with_a_role(server: Server, entry: Any) -> None:
    answer = post(server, "/v1/runs", {"input": "x", "conversation_history": [entry]})
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["param"].startswith("conversation_history[0]")


# -- images -----------------------------------------------------------------------------
NO_IMAGES = [
    *("http://", "http:///x", "https://", "https:///cat.png", "http://?x", "http://#x"),
    *("http://:80/x", "http://@/x", "http://[/x", "http:x", "ftp://x.example/y"),
    *("data:text/plain,x", "data:image/", ""),
]
IMAGES = [
    *("http://x", "https://x.example/y z", "https://user:pass@x.example:8443/y"),
    *("http://[::1]:80/y", "http://x?y=1", "https://bücher.example/ü.png", PIXEL),
]


@pytest.mark.parametrize("url", NO_IMAGES)
def test_an_image_without_a_host_is_refused(server: Server, url: str) -> None:
    content = [{"type": "input_image", "image_url": url}]
    answer = post(server, "/v1/responses", {"input": [{"role": "user", "content": content}]})
    assert_refused(answer, "input[0].content[0].image_url")
    asked = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]
    answer = post(server, "/v1/chat/completions", {"messages": asked})
    assert answer.json()["error"]["param"].startswith("messages[0].content[0].image_url")


@pytest.mark.parametrize("url", IMAGES)
def test_an_image_with_a_host_or_with_its_bytes_is_taken(server: Server, url: str) -> None:
    content = [{"type": "input_image", "image_url": url}]
    answer = post(server, "/v1/responses", {"input": [{"role": "user", "content": content}]})
    assert answer.status_code == 200, answer.text
