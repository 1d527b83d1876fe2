"""A body of millions of values is refused before it is parsed, and a large body is parsed beside the event loop."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from responses_app.protocol.errors import InvalidRequest
from responses_app.requests.json_body import (
    LOOP_BODY_BYTES,
    MAX_VALUES,
    parse_body,
    parse_object,
)
from tests.support.server import Server
from tests.support.websockets import socket

pytestmark = pytest.mark.any_database

MANY_ZEROS = b'{"input": [' + b"0," * MAX_VALUES + b"0]}"
LARGE_BODIES = {
    "zeros": b'{"input": [' + b"0," * 4_900_000 + b"0]}",
    "lists": b'{"input": [' + b"[]," * 3_200_000 + b"0]}",
    "objects": b'{"input": [' + b"{}," * 3_200_000 + b"0]}",
    "texts": b'{"input": [' + b'"",' * 3_200_000 + b'""]}',
    "names": b'{"input": {' + b'"a":0,' * 1_600_000 + b'"a":0}}',
    "nested": b'{"input": ' + b"[" * 9_000_000,
    "behind-a-text": b'{"user": "\\"\\\\", "input": [' + b"0," * 4_900_000 + b"0]}",
}
PATHS = (
    "/v1/responses",
    "/v1/responses/compact",
    "/v1/responses/input_tokens",
    "/v1/chat/completions",
    "/v1/conversations",
    "/v1/runs",
)


@pytest.mark.parametrize("name", LARGE_BODIES)
def test_a_body_of_too_many_values_is_refused_with_the_limit(name: str) -> None:
    with pytest.raises(InvalidRequest, match=str(MAX_VALUES)) as refused:
        parse_object(LARGE_BODIES[name])
    assert refused.value.code == "too_many_values"


@pytest.mark.parametrize(
    "text", ["," * 300_000, '",' * 300_000, "\\," * 300_000, "\\" * 300_001 + '"[{:', '{"a": [1, 2]}' * 40_000]
)
def test_separators_within_a_text_are_not_counted(text: str) -> None:
    assert parse_object(json.dumps({"input": [text, text]}).encode())["input"] == [text, text]


def test_an_open_text_is_broken_json_and_not_many_values() -> None:
    for ending in (b"", b"\\"):
        with pytest.raises(InvalidRequest) as refused:
            parse_object(b'{"input": "' + b"," * 300_000 + ending)
        assert refused.value.code == "invalid_json"


def test_as_many_values_as_the_limit_allows_are_taken() -> None:
    zeros = [0] * (MAX_VALUES - 2)  # the object and the name of its field are counted too
    assert parse_object(json.dumps({"a": zeros}).encode()) == {"a": zeros}
    with pytest.raises(InvalidRequest):
        parse_object(json.dumps({"a": [*zeros, 0]}).encode())


@pytest.mark.parametrize("path", PATHS)
def test_every_endpoint_refuses_too_many_values(server: Server, path: str) -> None:
    with server.http() as client:
        answer: httpx.Response = client.post(path, content=MANY_ZEROS)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (400, "too_many_values"), answer.text
    assert str(MAX_VALUES) in error["message"]


def test_a_websocket_refuses_too_many_values_and_goes_on(server: Server) -> None:
    with socket(server) as opened:
        opened.create(input=[0] * MAX_VALUES)
        refused = opened.receive()
        assert (refused["status"], refused["error"]["code"]) == (400, "too_many_values")
        assert opened.ask(input="hello")["type"] == "response.completed"


async def _is_parsed_within_one_step(body: dict[str, Any]) -> bool:
    """A thread needs a second step of the loop to hand over what it has."""
    parsing = asyncio.create_task(parse_body(json.dumps(body).encode()))
    await asyncio.sleep(0)
    is_done = parsing.done()
    assert await parsing == body
    return is_done


async def test_only_small_bodies_are_parsed_on_the_event_loop() -> None:
    assert await _is_parsed_within_one_step({"input": "x"})
    assert not await _is_parsed_within_one_step({"input": "x" * LOOP_BODY_BYTES})
