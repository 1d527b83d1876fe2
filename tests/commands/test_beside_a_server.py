"""Long commands beside a running server: a stream goes on while they work."""

import json
import os
import secrets
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.server import (
    Process,
    Server,
    eventually,
    frames,
    script,
)
from tests.support.stored_rows import count_rows

OLD_ROWS = 4000
RECORDS = 2000  # some seconds of work
LONG = "word " * 300
WORDS = 60
FILL = f"""
from datetime import timedelta
from django.utils import timezone
from tests.support.bulk_rows import copy_response, give_content, make_row
copy_response(make_row(at=timezone.now() - timedelta(days=30)), {OLD_ROWS - 1}, is_chain=True)
give_content()
"""


@contextmanager
def working(server: Server, folder: Path, *command: str) -> Iterator[Process]:
    """A command in a process of its own; it is interrupted at the end."""
    output = folder / "output"
    process = server.launch(["manage.py", *command], server.env, Path(os.devnull), output, output)
    try:
        yield process
        process.send_signal(signal.SIGINT)
        process.wait(30)
        assert "Interrupted:" in output.read_text()
    finally:
        process.kill()


def stream_meanwhile(server: Server, has_begun: Callable[[], bool]) -> bytes:
    """A stream that says most of its words once the command works; every word is a commit of its own."""
    asked = script({"say": "first "}, {"gate": "go"}, {"say": "word " * WORDS, "pace": 100})
    with server.http() as http:
        http.timeout = 60
        with http.stream("POST", "/v1/responses", json={"input": asked, "stream": True}) as answer:
            received = frames(answer)
            next(received)
            eventually(has_begun, 30, "the first work of the command")
            server.open_gate("go")
            return b"".join(received)


def check(server: Server, received: bytes) -> None:
    assert received.endswith(b"data: [DONE]\n\n")
    assert b"event: response.completed" in received
    assert "locked" not in server.log
    assert "Traceback" not in server.log


def stored(server: Server) -> int:
    return int(count_rows(server, "response"))


def test_a_stream_ends_while_prune_responses_still_removes(make_server: Callable[..., Server], tmp_path: Path) -> None:
    server = make_server()
    server.manage("shell", "-c", FILL)
    with working(server, tmp_path, "prune_responses", "--days", "5"):
        received = stream_meanwhile(server, lambda: stored(server) < OLD_ROWS)
        assert stored(server) > OLD_ROWS // 20, "the command was done before the stream"
    check(server, received)


@pytest.mark.any_database
def test_a_stream_ends_while_import_responses_still_adds(make_server: Callable[..., Server], tmp_path: Path) -> None:
    server = make_server()
    made = server.openai().responses.create(input=script({"say": LONG})).id
    line = server.managed("export_responses", made).stdout.decode()
    archive = tmp_path / "archive.jsonl"
    archive.write_text("".join(copied(line, made) for _ in range(RECORDS)))
    with working(server, tmp_path, "import_responses", str(archive)):
        received = stream_meanwhile(server, lambda: stored(server) > 2)
        assert stored(server) < RECORDS, "the command was done before the stream"
    check(server, received)


def copied(line: str, response_id: str) -> str:
    """The record of another response that is the same but for its ids."""
    session: str = json.loads(line)["session"]["public_id"]
    key = response_id.removeprefix("resp_")
    return line.replace(session, f"session_{secrets.token_hex(8)}").replace(key, secrets.token_hex(len(key) // 2))
