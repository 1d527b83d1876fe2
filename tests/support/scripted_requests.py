"""Requests whose input is a script for the scripted provider, and what its tools leave behind."""

from typing import Any

from tests.support.checker import check_log
from tests.support.server import Server, script

REASONING_TEXT_AND_CALL = script(
    {"think": "one two "},
    {"say": "Let me see. "},
    {"call": "calculate", "arguments": {"expression": "6*7"}},
)


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"call": name, "arguments": arguments}


def run_script(server: Server, *steps: dict[str, Any], **fields: Any) -> dict[str, Any]:
    with server.http() as client:
        answer = client.post("/v1/responses", json={"input": script(*steps), **fields})
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    check_log(server, body["id"])
    return body


def effects(server: Server, word: str) -> int:
    path = server.home / "effects.txt"
    return path.read_text().splitlines().count(word) if path.exists() else 0


def start_background(server: Server, *steps: dict[str, Any], **fields: Any) -> str:
    with server.http() as client:
        answer = client.post("/v1/responses", json={"input": script(*steps), "background": True, **fields})
    assert answer.status_code == 200, answer.text
    response_id: str = answer.json()["id"]
    return response_id


def respond(server: Server, **body: Any) -> dict[str, Any]:
    with server.http() as client:
        answer = client.post("/v1/responses", json={"input": "hi", **body})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found
