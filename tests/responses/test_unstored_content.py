"""``store: false``: what was asked and answered reaches no disk, no log line and no metric."""

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from responses_app.requests.create import ECHOED, OTHERS, UNECHOED
from tests.support.marked_requests import (
    in_front_of,
    marked_answer,
    marked_calls,
    marked_error,
    marked_request,
)
from tests.support.markers import (
    Markers,
    assert_no_trace,
    in_files,
    in_rows,
    in_temporary_files,
)
from tests.support.mcp_harness import ServerWithMcp
from tests.support.model_stub import (
    Answer,
    Finish,
    Gate,
    ModelStub,
    Raw,
    Step,
    Text,
    sse,
)
from tests.support.server import Server, eventually, frames
from tests.support.stored_rows import stored_rows

# Fields whose values are switches, that name what is stored already, or that are refused.
WORDLESS = {"background", "conversation", "previous_response_id", "prompt", "store", "stream"}


@pytest.fixture
def front(make_server: Callable[..., Server], stub: ModelStub, tmp_path: Path) -> Server:
    """A server in front of the stub, with an MCP server, as verbose as it gets."""
    (tmp_path / "tmp").mkdir()
    server = make_server(ServerWithMcp, **in_front_of(stub), TMPDIR=str(tmp_path / "tmp"))
    eventually(lambda: "MCP server demo is ready" in server.log, 30, "the MCP server")
    return server


def test_every_field_of_a_request_is_marked() -> None:
    assert set(marked_request(Markers())) >= {*ECHOED, *UNECHOED, *OTHERS} - WORDLESS


def test_nothing_of_it_reaches_the_disk(front: Server, stub: ModelStub, tmp_path: Path) -> None:
    marker, opened = Markers(), threading.Event()
    stub.play(marked_calls(marker), Finish())
    stub.play(*marked_answer(marker), Gate(opened), Text(marker("second half")), Finish())
    headers = {"X-Hermes-Session-Key": marker("session key")}
    body = {**marked_request(marker), "store": False, "stream": True}
    with (
        front.http() as client,
        client.stream("POST", "/v1/responses", json=body, headers=headers) as answer,
    ):
        assert answer.status_code == 200, answer.read()
        received = frames(answer)
        seen = b""
        while b"response.refusal.delta" not in seen:
            seen += next(received)
        assert in_rows(front, marker) == set()
        assert in_files(front, marker) == set()
        assert in_temporary_files(front, tmp_path / "tmp", marker) == set()
        opened.set()
        seen += b"".join(received)
    assert b"event: response.completed" in seen
    assert_all_of_it_happened(marker, seen)
    assert_no_trace(front, marker)
    assert in_files(front, marker) == set()
    assert set(stored_rows(front, "toolevent", "name", "status")) == {
        ("calculate", "failed"),
        ("chatty", "completed"),
        ("demo.add", "failed"),
        ("explode", "failed"),
        ("quoted", "denied"),
        ("unknown", "failed"),
    }


def assert_all_of_it_happened(marker: Markers, seen: bytes) -> None:
    """The markers were where they should be: the client got those of the answer and the tools."""
    assert marker.found_in(seen) >= {
        *("reasoning", "answer", "refusal", "second half", "citation title", "opaque item"),
        *("expression", "error of a tool", "reason for consent", "MCP argument", "invented tool"),
    }


def test_errors_of_the_upstream_are_not_written_down(make_server: Callable[..., Server], stub: ModelStub) -> None:
    front, marker = make_server(**in_front_of(stub)), Markers()
    nonsense = {"type": marker("event type")}
    scripts: list[list[Step]] = [
        [Answer(400, json.dumps(marked_error(marker)).encode())],
        [Answer(503, json.dumps(marked_error(marker)).encode())],
        [Text(marker("text before an error")), Raw(failed(marker))],
        [Text(marker("before nonsense")), Raw(sse(nonsense, "x")), Raw(b"data: {nonsense\n\n")],
    ]
    for path in ("/v1/responses", "/v1/chat/completions"):
        for script in scripts:
            stub.play(*script)
            with front.http() as client:
                answer = client.post(path, json=asked(path, marker))
            assert answer.status_code in (200, 400, 500), answer.text
    assert front.log.count("the model failed") >= 4
    assert_no_trace(front, marker)
    assert in_files(front, marker) == set()


def failed(marker: Markers) -> bytes:
    response = {"id": "resp_1", "output": [], "status": "failed", **marked_error(marker)}
    return sse({"type": "response.failed", "response": response}, "response.failed")


def asked(path: str, marker: Markers) -> dict[str, Any]:
    reply = marker("question")
    if path == "/v1/responses":
        return {"input": reply, "store": False}
    return {"messages": [{"role": "user", "content": reply}], "store": False}
