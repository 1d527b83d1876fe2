"""Servers that are killed in the middle of a response, and started again."""

from collections.abc import Callable
from typing import Any

from tests.support.server import Server, eventually, script


def start_and_kill(server: Server, until: Callable[[], Any], *steps: dict[str, Any], **fields: Any) -> str:
    with server.http() as client:
        asked = {"input": script(*steps), "background": True, **fields}
        response_id: str = client.post("/v1/responses", json=asked).json()["id"]
    eventually(lambda: until() and server.body(response_id)["status"] == "in_progress", what="the moment of the kill")
    server.kill()
    server.start()
    return response_id


def has_output(server: Server, reply: str) -> bool:
    rows = server.query("SELECT id FROM responses_app_response WHERE status = 'in_progress'")
    return any(reply in str(server.body(row[0])["output"]) for row in rows)
