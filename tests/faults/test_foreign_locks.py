"""A row that a foreign session holds: only what needs that row waits for it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import psycopg
import pytest

from tests.support.checker import check_log
from tests.support.server import (
    Server,
    created_id,
    eventually,
    script,
    streaming,
    text,
)

pytestmark = pytest.mark.row_locks

SESSION_OF = "SELECT session_id FROM responses_app_response WHERE id = ?"


@contextmanager
def locked(server: Server, table: str, pk: object) -> Iterator[None]:
    with psycopg.connect(server.env["DATABASE_URL"]) as other:
        other.execute(f"SELECT 1 FROM responses_app_{table} WHERE id = %s FOR UPDATE".encode(), [pk])
        yield
        other.rollback()


def until_a_write_waits(server: Server) -> None:
    def lags() -> bool:
        with server.http() as client:
            checks = client.get("/health/detailed").json()["readiness"]["checks"]
        return bool(checks["writer"]["lag_secs"] > 0.05)

    eventually(lags, 20, "a write that waits")


def test_a_locked_session_silences_no_other_stream(server: Server) -> None:
    before = server.openai().responses.create(model="hermes-agent", input="first turn")
    [(session_id,)] = server.query(SESSION_OF, before.id)
    answers: list[httpx.Response] = []

    def go_on() -> None:
        with server.http() as client:
            body = {"input": "second turn", "previous_response_id": before.id}
            answers.append(client.post("/v1/responses", json=body))

    asking = threading.Thread(target=go_on, daemon=True)
    unrelated = script({"say": "before "}, {"gate": "foreign-session"}, {"say": "after"})
    with streaming(server, input=unrelated) as (_, received):
        response_id = created_id(next(received))
        with locked(server, "session", session_id):
            asking.start()
            until_a_write_waits(server)
            server.open_gate("foreign-session")
            assert list(received)[-1] == b"data: [DONE]\n\n"
            assert text(server.body(response_id)) == "before after"
    asking.join(30)
    assert [answer.status_code for answer in answers] in ([200], [503])
    check_log(server, response_id)


def test_a_locked_response_silences_no_other_stream_and_loses_nothing(server: Server) -> None:
    kept = script({"say": "kept "}, {"gate": "foreign-kept"}, {"say": "whole"})
    free = script({"say": "free "}, {"gate": "foreign-free"}, {"say": "whole"})
    with streaming(server, input=kept) as (_, kept_frames), streaming(server, input=free) as (_, free_frames):
        kept_id, free_id = created_id(next(kept_frames)), created_id(next(free_frames))
        eventually(lambda: text(server.body(kept_id)) == "kept ")
        with locked(server, "response", kept_id):
            server.open_gate("foreign-kept")
            until_a_write_waits(server)
            server.open_gate("foreign-free")
            assert list(free_frames)[-1] == b"data: [DONE]\n\n"
        assert list(kept_frames)[-1] == b"data: [DONE]\n\n"
    assert text(server.body(kept_id)) == "kept whole"
    for response_id in (kept_id, free_id):
        check_log(server, response_id)
