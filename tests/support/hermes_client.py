"""What a Hermes frontend does: runs, their events, sessions and their chat, over plain HTTP."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from tests.support.server import Server, eventually, frames

ENDED = {"completed", "failed", "cancelled", "interrupted"}


def post(server: Server, path: str, body: dict[str, Any], key: str | None = None, **headers: str) -> httpx.Response:
    with server.http(key) as client:
        return client.post(path, json=body, headers={name.replace("_", "-"): value for name, value in headers.items()})


def get(server: Server, path: str, key: str | None = None, **params: str | int) -> httpx.Response:
    with server.http(key) as client:
        return client.get(path, params=params)


def start_run(server: Server, body: dict[str, Any], **headers: str) -> str:
    answer = post(server, "/v1/runs", body, **headers)
    assert answer.status_code == 202, answer.text
    run_id: str = answer.json()["run_id"]
    return run_id


def run_status(server: Server, run_id: str) -> dict[str, Any]:
    answer = get(server, f"/v1/runs/{run_id}")
    assert answer.status_code == 200, answer.text
    shown: dict[str, Any] = answer.json()
    return shown


def until_status(server: Server, run_id: str, *wanted: str) -> dict[str, Any]:
    def look() -> dict[str, Any] | None:
        shown = run_status(server, run_id)
        return shown if shown["status"] in wanted else None

    found: dict[str, Any] = eventually(look, 20, f"{run_id} becoming {wanted}")
    return found


def ended_run(server: Server, run_id: str) -> dict[str, Any]:
    return until_status(server, run_id, *ENDED)


@contextmanager
def run_events(server: Server, run_id: str, **sent: Any) -> Iterator[Iterator[bytes]]:
    """``sent`` is given to httpx: params or headers."""
    with server.http() as client, client.stream("GET", f"/v1/runs/{run_id}/events", **sent) as answer:
        assert answer.status_code == 200, answer.read()
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield frames(answer)


def all_run_events(server: Server, run_id: str, **sent: Any) -> list[bytes]:
    with run_events(server, run_id, **sent) as received:
        return [frame for frame in received if frame != b": keepalive\n\n"]


def parsed(frame: bytes) -> tuple[int | None, str | None, dict[str, Any]]:
    """A frame's id, its event line and its data."""
    fields = dict(line.split(": ", 1) for line in frame.decode().strip().split("\n"))
    return (int(fields["id"]) if "id" in fields else None, fields.get("event"), json.loads(fields["data"]))


def event_data(received: list[bytes]) -> list[dict[str, Any]]:
    return [parsed(frame)[2] for frame in received if not frame.startswith(b":")]


def names(received: list[bytes]) -> list[str]:
    return [event["event"] for event in event_data(received)]


def chat_stream(server: Server, session_id: str, body: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    with server.http() as client, client.stream("POST", f"/api/sessions/{session_id}/chat/stream", json=body) as answer:
        assert answer.status_code == 200, answer.read()
        received = [parsed(frame) for frame in frames(answer) if not frame.startswith(b":")]
    return [(str(name), data) for _, name, data in received]
