"""Every malformed request is a 4xx that names the field, and stores nothing."""

import json
from typing import Any

import httpx
import pytest

from tests.support.errors import assert_error
from tests.support.server import Server
from tests.support.stored_rows import count_rows, stored_rows

JSON = {"Content-Type": "application/json"}


def post(server: Server, content: bytes) -> httpx.Response:
    with server.http() as client:
        return client.post("/v1/responses", content=content, headers=JSON)


@pytest.fixture
def _nothing_is_stored(server: Server) -> Any:
    before = count_rows(server, "response")
    yield
    assert count_rows(server, "response") == before


BAD_FIELDS: list[tuple[dict[str, Any], str]] = [
    ({}, "input"),
    ({"input": None}, "input"),
    ({"input": 5}, "input"),
    ({"input": []}, "input"),
    ({"input": [5]}, "input[0]"),
    ({"input": [{"role": "robot", "content": "x"}]}, "input[0].role"),
    ({"input": [{"role": "user"}]}, "input[0].content"),
    ({"input": [{"role": "user", "content": []}]}, "input[0].content"),
    ({"input": [{"role": "user", "content": [{"type": "input_text"}]}]}, "input[0].content[0].text"),
    ({"input": [{"role": "user", "content": [{"type": "input_audio"}]}]}, "input[0].content[0].type"),
    ({"input": [{"type": "unknown", "content": "x"}]}, "input[0].type"),
    ({"input": "x", "stream": "yes"}, "stream"),
    ({"input": "x", "store": 1}, "store"),
    ({"input": "x", "background": "true"}, "background"),
    ({"input": "x", "instructions": ["be kind"]}, "instructions"),
    ({"input": "x", "metadata": [1]}, "metadata"),
    ({"input": "x", "metadata": {"k": 1}}, "metadata.k"),
    ({"input": "x", "metadata": {"k": "v" * 513}}, "metadata.k"),
    ({"input": "x", "metadata": {"k" * 65: "v"}}, "metadata"),
    ({"input": "x", "metadata": {str(n): "v" for n in range(17)}}, "metadata"),
    ({"input": "x", "max_output_tokens": 0}, "max_output_tokens"),
    ({"input": "x", "max_output_tokens": 1.5}, "max_output_tokens"),
    ({"input": "x", "max_output_tokens": 2**40}, "max_output_tokens"),
    ({"input": "x", "temperature": 3}, "temperature"),
    ({"input": "x", "top_p": -1}, "top_p"),
    ({"input": "x", "truncation": "sometimes"}, "truncation"),
    ({"input": "x", "previous_response_id": 5}, "previous_response_id"),
    ({"input": "x", "previous_response_id": ""}, "previous_response_id"),
    ({"input": "x", "model": 5}, "model"),
]


@pytest.mark.usefixtures("_nothing_is_stored")
@pytest.mark.parametrize(("body", "param"), BAD_FIELDS, ids=[f"{p}-{n}" for n, (_, p) in enumerate(BAD_FIELDS)])
def test_a_bad_value_is_a_400_that_names_its_field(server: Server, body: dict[str, Any], param: str) -> None:
    with server.http() as client:
        assert_error(client.post("/v1/responses", json=body), 400, param)


@pytest.mark.usefixtures("_nothing_is_stored")
@pytest.mark.parametrize(
    ("content", "param"),
    [
        (b"", None),
        (b"{", None),
        (b"[]", None),
        (b'"text"', None),
        (b"null", None),
        (b"\xff\xfe", None),
        (b'{"input": "a\\u0000b"}', "input"),
        (b'{"input": "a\\ud800b"}', "input"),
        (b'{"input": [{"role": "user", "content": "\\udc00"}]}', "input[0].content"),
        (b'{"input": "x", "temperature": NaN}', "temperature"),
        (b'{"input": "x", "metadata": {"a": -Infinity}}', "metadata.a"),
        (b'{"input": "x", "temperature": 1e999}', "temperature"),
        (b'{"input": "x", "max_output_tokens": ' + b"9" * 5000 + b"}", "max_output_tokens"),
        (b'{"input": ' + b"[" * 100 + b"]" * 100 + b"}", "input"),
        (b'{"input": ' + b"[" * 10_000 + b"]" * 10_000 + b"}", None),
        (b'{"input": ' + b'{"a":' * 10_000 + b"1" + b"}" * 10_000 + b"}", None),
    ],
    ids=range(16),
)
def test_broken_json_is_a_400(server: Server, content: bytes, param: str | None) -> None:
    assert_error(post(server, content), 400, param)


@pytest.mark.usefixtures("_nothing_is_stored")
def test_a_body_over_the_limit_is_a_413(server: Server) -> None:
    error = assert_error(post(server, b'{"input": "' + b"x" * 20_000_000 + b'"}'), 413, None)
    assert error["code"] == "body_too_large"


def test_unknown_paths_and_methods_answer_in_json(server: Server) -> None:
    with server.http() as client:
        assert_error(client.get("/v1/nothing"), 404, None)
        assert_error(client.post("/nothing/at/all"), 404, None)
        assert_error(client.get("/v1/responses/"), 404, None)
        assert_error(client.put("/v1/responses"), 405, None)
        assert_error(client.put("/v1/responses/resp_x"), 405, None)
        assert_error(client.get("/v1/responses/resp_x/cancel"), 405, None)
        assert_error(client.get("/v1/responses/resp_x"), 404, "response_id")
        assert_error(client.get("/v1/responses/%00"), 404, "response_id")


def test_bad_queries_and_headers_are_named(server: Server) -> None:
    with server.http() as client:
        done = client.post("/v1/responses", json={"input": "hi"}).json()["id"]
        assert_error(client.get(f"/v1/responses/{done}?stream=perhaps"), 400, "stream")
        assert_error(client.get(f"/v1/responses/{done}?stream=true&starting_after=-1"), 400, "starting_after")
        assert_error(client.get(f"/v1/responses/{done}?stream=true&starting_after=x"), 400, "starting_after")
        header = {"Last-Event-ID": "x"}
        assert_error(client.get(f"/v1/responses/{done}?stream=true", headers=header), 400, "Last-Event-ID")
        for value in (b"a/b", b"..", b"x" * 257, "é".encode()):
            headers = {b"X-Hermes-Session-Id": value}
            answer = client.post("/v1/responses", json={"input": "hi"}, headers=headers)
            assert_error(answer, 400, "X-Hermes-Session-Id")


def test_an_unknown_host_is_refused_on_both_apis(server: Server) -> None:
    with server.http() as client:
        for method, path in (("GET", "/v1/models"), ("POST", "/v1/responses"), ("GET", "/v1/responses/x?stream=1")):
            answer = client.request(method, path, headers={"Host": "evil.example"})
            assert_error(answer, 400, "Host")


def test_unknown_models_and_parents_are_404(server: Server) -> None:
    with server.http() as client:
        error = assert_error(client.post("/v1/responses", json={"input": "x", "model": "gpt-9"}), 404, "model")
        assert error["code"] == "model_not_found"
        answer = client.post("/v1/responses", json={"input": "x", "previous_response_id": "resp_no"})
        error = assert_error(answer, 404, "previous_response_id")
        assert error["code"] == "previous_response_not_found"


def test_unknown_fields_are_kept_and_named(server: Server) -> None:
    with server.http() as client:
        answer = client.post("/v1/responses", json={"input": "x", "client_metadata": {"a": 1}, "zeta": None})
    assert answer.status_code == 200
    assert answer.headers["x-hermes-ignored"] == "client_metadata"
    [(request, ignored)] = stored_rows(server, "response", "request", "ignored", id=answer.json()["id"])
    assert json.loads(request)["client_metadata"] == {"a": 1}
    assert ignored == '["client_metadata"]'


def test_unknown_field_names_cannot_forge_headers(server: Server) -> None:
    body = {"input": "x", "a\r\nX-Forged: 1": 1, "é": 1, **{f"field{n}": n for n in range(2000)}}
    with server.http() as client:
        answer = client.post("/v1/responses", json=body)
    assert answer.status_code == 200
    assert "x-forged" not in answer.headers
    assert len(answer.headers["x-hermes-ignored"]) < 2100


def test_odd_requests_below_the_views_answer_in_json_too(server: Server) -> None:
    with server.http() as client:
        many = "&".join(f"f{n}=1" for n in range(1100))
        assert_error(client.get(f"/v1/responses/resp_x?{many}"), 400, None)
        upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
        answer = client.get("/nowhere", headers={**upgrade, "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="})
        assert_error(answer, 404, None)


def test_a_long_key_over_many_values_is_checked_in_linear_time(server: Server) -> None:
    content = b'{"input": "x", "' + b"k" * 1_000_000 + b'": [' + b"1," * 190_000 + b"1]}"
    answer = post(server, content)
    assert answer.status_code == 200
    assert answer.elapsed.total_seconds() < 5
