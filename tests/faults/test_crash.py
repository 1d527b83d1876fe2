"""kill -9 and another start, at chosen moments; ``faults/test_campaigns.py`` kills at any."""

import os
import resource
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway_app.models import RuntimeProcess
from gateway_app.runtime.processes import MACHINE, is_dead_here, started_at_tick
from responses_app.protocol.sse import decode_frame
from tests.support.checker import check_log
from tests.support.server import (
    Server,
    created_id,
    eventually,
    script,
    streaming,
    text,
)

pytestmark = pytest.mark.fault


def test_an_interrupted_response_ends_incomplete_where_nothing_is_resumed(make_server: Callable[..., Server]) -> None:
    server = make_server(HERMES_RECOVERY="incomplete")
    asked = script({"say": "kept words "}, {"gate": "never"})
    with streaming(server, input=asked) as (_, received):
        response_id = created_id(next(received))
        for frame in received:
            if b"words " in frame:
                break
        seen_last = decode_frame(frame)["sequence_number"]
    server.kill()
    server.start()
    body = server.ended(response_id, timeout_secs=5)  # well before the lease of the dead process runs out
    assert body["status"] == "incomplete"
    assert body["incomplete_details"] == {"reason": "server_interrupted"}
    assert text(body) == "kept words "
    assert body["output"][0]["status"] == "incomplete"
    rest = server.replay(response_id, after=seen_last)
    assert decode_frame(rest[0])["sequence_number"] == seen_last + 1
    check_log(server, response_id)


def test_work_that_never_started_is_done_after_the_restart(make_server: Callable[..., Server]) -> None:
    server = make_server()
    client = server.openai()
    first = client.responses.create(model="hermes-agent", input=script({"gate": "never"}), background=True)
    eventually(lambda: server.body(first.id)["status"] == "in_progress")
    waiting = client.responses.create(
        model="hermes-agent", input="hello", background=True, previous_response_id=first.id
    )
    assert waiting.status == "queued"
    server.kill()
    server.start()
    assert server.body(waiting.id)["status"] == "queued"
    server.open_gate("never")
    assert server.ended(first.id)["status"] == "completed"
    assert server.ended(waiting.id)["status"] == "completed"


def test_an_unstored_response_of_a_dead_process_is_settled(make_server: Callable[..., Server]) -> None:
    server = make_server()
    with streaming(server, input=script({"say": "x "}, {"gate": "never"}), store=False) as (_, received):
        response_id = created_id(next(received))
        next(received)
        server.kill()
    server.start()
    sql = "SELECT status, incomplete_reason FROM responses_app_response WHERE id = ?"
    eventually(lambda: server.query(sql, response_id) == [("incomplete", "server_interrupted")])


def test_a_dead_process_that_was_never_recorded_is_dead() -> None:
    """As under a supervisor that does not wait for its children."""
    with subprocess.Popen(["sleep", "0"]) as child:
        eventually(lambda: Path(f"/proc/{child.pid}/stat").read_text().split()[2] == "Z")
        assert started_at_tick(child.pid) == ""
        assert started_at_tick(os.getpid()) != ""


def test_no_process_counts_as_dead_for_want_of_a_file_descriptor() -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    process = RuntimeProcess(machine=MACHINE, pid=os.getpid(), pid_started=started_at_tick(os.getpid()))
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, limits[1]))
    try:
        assert not is_dead_here(process)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_two_starts_use_the_same_key_and_login(make_server: Callable[..., Server]) -> None:
    server = make_server()
    before = {name: (server.home / name).read_text() for name in ("api_key", "secret_key", "admin_login")}
    for name in before:
        assert (server.home / name).stat().st_mode & 0o777 == 0o600
    server.kill()
    server.start()
    assert before == {name: (server.home / name).read_text() for name in before}
    assert server.key not in server.log  # a log is no terminal
    assert "curl -N" in server.log
