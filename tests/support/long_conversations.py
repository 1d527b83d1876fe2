"""Long conversations, for the tests of compaction."""

import threading
from collections.abc import Callable
from typing import Any

import httpx

from tests.support.model_stub import ModelStub
from tests.support.server import Server

THRESHOLD = 1000
LONG = "word " * 1200  # about 1,200 tokens
MANAGED: dict[str, Any] = {"context_management": [{"type": "compaction", "compact_threshold": THRESHOLD}]}
SUMMARY = "[Summary of the conversation"  # so begins what a model is shown of one
COMPACT = "/v1/responses/compact"
TALK: list[dict[str, Any]] = [
    {"role": "user", "content": "first words"},
    {"role": "assistant", "content": "first answer"},
    {"role": "user", "content": "last words"},
]


def post(
    server: Server,
    path: str = "/v1/responses",
    key: str | None = None,
    headers: dict[str, str] | None = None,
    **body: Any,
) -> httpx.Response:
    with server.http(key) as client:
        return client.post(path, json={"model": "hermes-agent", **body}, headers=headers)


def create(server: Server, path: str = "/v1/responses", **body: Any) -> dict[str, Any]:
    answer = post(server, path, **body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def kinds(body: dict[str, Any]) -> list[str]:
    return [item["type"] for item in body["output"]]


def sent(stub: ModelStub, number: int = -1) -> str:
    """Everything a request showed the model, in either protocol."""
    body = stub.asked[number].body
    return str(body.get("messages") or body.get("input"))


def in_background(work: Callable[[], Any]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread
