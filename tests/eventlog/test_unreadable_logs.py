"""Logs of another version, and logs that are damaged: none is tried for ever, and none holds up the others."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from responses_app.models.segments import FORMAT_VERSION
from tests.support.damaged_logs import SEGMENTS, change_internal_events
from tests.support.migrated_database import Database
from tests.support.server import (
    Server,
    eventually,
    script,
    text,
)

pytestmark = pytest.mark.any_database

MAX_ATTEMPTS = 3
CLAIM = "SELECT status, attempt, crashes FROM responses_app_response WHERE id = ?"
SET_FORMAT = "UPDATE responses_app_eventsegment SET format_version = ? WHERE response_id = ?"
FINISHED = b"event: hermes.model.finished\n"


@dataclass
class Restarted:
    """A server that was killed in the middle of its turns, and started again over changed logs."""

    server: Server
    unknown_fields: str
    damaged: str
    kept: list[bytes]  # the segments of the damaged one
    after_damaged: str
    newer: str
    after_newer: str


@pytest.fixture(scope="module")
def restarted(database: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Restarted]:
    home = tmp_path_factory.mktemp("unreadable") / "home"
    env = {"HERMES_SWEEP_SECS": "0.1", "HERMES_MAX_ATTEMPTS": str(MAX_ATTEMPTS)}
    server = database.server(home, Server, **env).start()
    try:
        unknown_fields, damaged, newer = [_in_a_tool(server) for _ in range(3)]
        after_damaged = _ask(server, "and then?", previous_response_id=damaged)
        after_newer = _ask(server, "and then?", previous_response_id=newer)
        server.kill()
        change_internal_events(server, unknown_fields, b'"usage":{', b'"usage":{"unknown_tokens":1,')
        change_internal_events(server, unknown_fields, b"hermes.tool.started", b"hermes.tool.unknown")
        change_internal_events(server, damaged, b'"usage":{', b'"usbge":{')
        kept = [bytes(frames) for _, frames in server.query(SEGMENTS, damaged)]
        assert server.change(SET_FORMAT, FORMAT_VERSION + 1, newer)
        server.start()
        yield Restarted(server, unknown_fields, damaged, kept, after_damaged, newer, after_newer)
    finally:
        server.kill()


def test_unknown_fields_and_unknown_internal_events_are_passed_over(restarted: Restarted) -> None:
    body = restarted.server.ended(restarted.unknown_fields)
    assert body["status"] == "completed"
    assert text(body).startswith("before ")
    assert restarted.server.query(CLAIM, restarted.unknown_fields) == [("completed", 2, 1)]


def test_a_damaged_log_ends_as_failed_and_stays(restarted: Restarted) -> None:
    server = restarted.server
    body = server.ended(restarted.damaged)
    assert (body["status"], body["error"]["code"]) == ("failed", "server_error")
    assert text(body) == "before "
    assert server.query(CLAIM, restarted.damaged)[0][:2] == ("failed", MAX_ATTEMPTS)
    frames = server.replay(restarted.damaged)
    assert frames[-1] == b"data: [DONE]\n\n"
    assert b"event: response.failed\n" in frames[-2]
    stored = [bytes(frames) for _, frames in server.query(SEGMENTS, restarted.damaged)]
    assert stored[: len(restarted.kept)] == restarted.kept
    assert server.ended(restarted.after_damaged)["status"] == "completed"


def test_cancel_ends_a_damaged_log_at_once(restarted: Restarted) -> None:
    server = restarted.server
    waiting = _ask(server, script({"say": "x"}, {"call": "guarded", "arguments": {"text": "t"}}))
    parked = "SELECT 1 FROM responses_app_response WHERE id = ? AND parked_until IS NOT NULL"
    eventually(lambda: server.query(parked, waiting), 30, "the wait for consent")
    change_internal_events(server, waiting, b'"usage":{', b'"usbge":{')
    with server.http() as client:
        body = client.post(f"/v1/responses/{waiting}/cancel").json()
    assert (body["status"], text(body)) == ("cancelled", "x")
    assert server.query(CLAIM, waiting)[0][1:] == (2, 0)


def test_a_newer_format_waits_and_goes_on_when_it_is_known(restarted: Restarted) -> None:
    server = restarted.server
    assert server.ended(_ask(server, "hello"))["status"] == "completed"  # held up by none of them
    assert server.query(CLAIM, restarted.newer) == [("in_progress", 1, 1)]
    assert server.body(restarted.after_newer)["status"] == "queued"
    with server.http() as client:
        health = client.get("/health/detailed").json()
        assert health["readiness"]["checks"]["log_formats"] == {"status": "degraded", "newer": [restarted.newer]}
        for path in (f"/v1/responses/{restarted.newer}", f"/v1/responses/{restarted.newer}?stream=true"):
            answer = client.get(path)
            assert (answer.status_code, answer.json()["error"]["code"]) == (503, "log_format_not_supported")
            assert answer.headers["x-should-retry"] == "false"
        assert restarted.newer in [body["id"] for body in client.get("/v1/responses").json()["data"]]
    assert server.change(SET_FORMAT, FORMAT_VERSION, restarted.newer)
    assert server.ended(restarted.newer)["status"] == "completed"
    assert server.ended(restarted.after_newer)["status"] == "completed"


def _in_a_tool(server: Server) -> str:
    """Its model has finished a round, and its tool does not end."""
    response_id = _ask(server, script({"say": "before "}, {"call": "effect", "arguments": {"text": "t", "gate": "-"}}))
    started = b"event: hermes.tool.started\n"
    eventually(lambda: any(started in bytes(found) for _, found in server.query(SEGMENTS, response_id)))
    return response_id


def _ask(server: Server, asked: str, **fields: Any) -> str:
    created = server.openai().responses.create(model="hermes-agent", input=asked, background=True, **fields)
    return str(created.id)
