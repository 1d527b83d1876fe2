"""A turn with ``store: false`` whose row is taken away: its client gets an end, for nothing else has its log."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from tests.support.server import (
    Server,
    created_id,
    events,
    eventually,
    script,
    streaming,
)
from tests.support.stored_rows import stored_rows

pytestmark = pytest.mark.any_database

OVERTAKEN = "attempt = attempt + 1, lease_owner = 'other', lease_until = '2999-01-01'"
SETTLED = "status = 'incomplete', finished_at = '2026-01-01', lease_owner = '', lease_until = NULL"
RELEASED = "lease_owner = '', lease_until = NULL"


def change_row(server: Server, response_id: str, change: str) -> None:
    """As another process would."""
    path = server.home / "hermes.sqlite3"
    with closing(sqlite3.connect(path, timeout=20, isolation_level=None)) as database:
        database.execute(f"UPDATE responses_app_response SET {change} WHERE id = ?", [response_id])


def until_running(received: Iterator[bytes]) -> None:
    """Its first words are here, so that a turn has claimed it."""
    next(frame for frame in received if b"output_text.delta" in frame)


@pytest.mark.parametrize(
    ("change", "status"), [(OVERTAKEN, "in_progress"), (SETTLED, "incomplete"), (RELEASED, "incomplete")]
)
def test_its_reader_gets_a_terminal_event(make_server: Callable[..., Server], change: str, status: str) -> None:
    server = make_server(HERMES_LEASE_SECS="1", TEST_IDLE_SECS="60")
    asked = script({"say": "before "}, {"gate": "never"})
    with streaming(server, input=asked, store=False) as (_, received):
        response_id = created_id(next(received))
        until_running(received)
        change_row(server, response_id, change)
        frames = list(received)
    assert frames[-1] == b"data: [DONE]\n\n"
    last = events(frames)[-1]
    assert last["type"] == "response.incomplete"
    assert last["response"]["incomplete_details"]["reason"] == "server_interrupted"
    assert "before " in json.dumps(last["response"]["output"])
    assert stored_rows(server, "response", "status", id=response_id) == [(status,)]


def test_one_that_finds_its_row_taken_at_the_end_gets_its_answer(make_server: Callable[..., Server]) -> None:
    server = make_server(HERMES_LEASE_SECS="600", TEST_IDLE_SECS="60")
    asked = script({"say": "whole"}, {"gate": "go"})
    with streaming(server, input=asked, store=False) as (_, received):
        response_id = created_id(next(received))
        until_running(received)
        change_row(server, response_id, OVERTAKEN)
        server.open_gate("go")
        frames = list(received)
    assert frames[-1] == b"data: [DONE]\n\n"
    assert events(frames)[-1]["type"] == "response.completed"


def test_one_that_was_settled_while_it_waited_for_a_slot_gets_an_end(make_server: Callable[..., Server]) -> None:
    server = make_server(HERMES_MAX_CONCURRENT="1", TEST_IDLE_SECS="60")
    with server.http() as client:
        first = {"input": script({"gate": "slot"}, {"say": "first"}), "background": True}
        running = client.post("/v1/responses", json=first).json()["id"]
        eventually(lambda: server.model_calls("slot"))
    with streaming(server, input=script({"say": "never"}), store=False) as (_, received):
        response_id = created_id(next(received))
        change_row(server, response_id, SETTLED)
        server.open_gate("slot")
        frames = list(received)
    assert frames[-1] == b"data: [DONE]\n\n"
    assert events(frames)[-1]["response"]["incomplete_details"]["reason"] == "server_interrupted"
    assert server.ended(running)["status"] == "completed"
