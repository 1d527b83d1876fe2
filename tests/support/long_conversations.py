"""Long conversations, for the tests of compaction."""

from typing import Any

import httpx

from tests.support.server import Server

THRESHOLD = 1000
LONG = "word " * 900  # about 1,125 tokens
MANAGED: dict[str, Any] = {"context_management": [{"type": "compaction", "compact_threshold": THRESHOLD}]}
SUMMARY = "[Summary of the conversation"  # so begins what a model is shown of one
COMPACT = "/v1/responses/compact"


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
