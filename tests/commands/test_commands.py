"""replay_response, recover_responses and doctor, beside live servers and after dead ones."""

import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from tests.support.checker import check_log
from tests.support.model_stub import ModelStub
from tests.support.scripted_requests import call
from tests.support.server import (
    ROOT,
    Server,
    eventually,
    script,
    text,
)

pytestmark = pytest.mark.any_database


def printed(done: "subprocess.CompletedProcess[bytes]") -> str:
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def test_a_replay_is_the_stream_as_it_was(server: Server) -> None:
    asked = script({"say": "one two three "}, {"call": "effect", "arguments": {}})
    response_id = server.openai().responses.create(input=asked).id
    stream = server.replay(response_id)
    assert server.managed("replay_response", response_id).stdout == b"".join(stream)
    assert server.managed("replay_response", response_id, "--after", "3").stdout == b"".join(stream[4:])
    assert "event: hermes.tool.finished" in printed(server.managed("replay_response", response_id, "--internal"))


def test_a_paced_replay_takes_its_time(server: Server) -> None:
    response_id = server.openai().responses.create(input=script({"say": "a b c d e f", "pace": 5})).id
    command = [sys.executable, "manage.py", "replay_response", response_id, "--speed", "1"]
    with subprocess.Popen(command, cwd=ROOT, env=server.env, stdout=subprocess.PIPE) as replay:
        assert replay.stdout is not None
        first = replay.stdout.readline()
        started = time.monotonic()
        rest = replay.stdout.read()
    assert first + rest == b"".join(server.replay(response_id))
    assert 0.5 < time.monotonic() - started < 10


def test_a_running_response_is_replayed_to_its_present_end_or_followed(server: Server) -> None:
    asked = script({"say": "so far "}, {"gate": "replay-gate"}, {"say": "the rest"})
    response_id = server.openai().responses.create(input=asked, background=True).id
    eventually(lambda: b"so" in server.managed("replay_response", response_id).stdout)
    assert b"[DONE]" not in server.managed("replay_response", response_id).stdout
    server.open_gate("replay-gate")
    followed = server.managed("replay_response", response_id, "--follow").stdout
    assert followed == b"".join(server.replay(response_id))


def test_unreadable_responses_say_why(server: Server) -> None:
    unstored = server.openai().responses.create(input="x", store=False).id
    deleted = server.openai().responses.create(input="x").id
    server.openai().responses.delete(deleted)
    assert "store: false" in server.managed("replay_response", unstored).stderr.decode()
    assert "was deleted" in server.managed("replay_response", deleted).stderr.decode()


def left_behind(server: Server) -> str:
    printed = script({"say": "kept words "}, {"gate": "after-recovery"}, {"say": "and the rest"})
    asked = script(call("effect", text=printed))
    response_id = server.openai().responses.create(input=asked, background=True).id
    eventually(lambda: [item["type"] for item in server.body(response_id)["output"]][-1:] == ["message"])
    server.kill()
    return response_id


def test_recovery_frees_what_may_go_on(make_server: Callable[..., Server]) -> None:
    server = make_server(HERMES_LEASE_SECS="3600")
    response_id = left_behind(server)
    assert "Would free 1 responses and end 0" in printed(server.managed("recover_responses", "--dry-run"))
    done = server.managed("recover_responses")
    assert "1 dead processes. Freed 1 responses, ended 0" in printed(done)
    assert "No server runs" in done.stderr.decode()
    assert "0 dead processes. Freed 0 responses" in printed(server.managed("recover_responses"))
    server.open_gate("after-recovery")
    server.start()
    assert server.ended(response_id)["status"] == "completed"
    check_log(server, response_id)


def test_recovery_settles_what_no_process_may_continue(make_server: Callable[..., Server]) -> None:
    server = make_server()
    response_id = left_behind(server)
    assert "ended 1 as incomplete" in printed(server.managed("recover_responses", "--settle"))
    server.start()
    body = server.body(response_id)
    assert (body["status"], body["incomplete_details"]) == ("incomplete", {"reason": "server_interrupted"})
    assert text(body) == "kept words "
    assert body["usage"]["output_tokens"] == 1 + 3  # of the call before, and an estimate of the text
    check_log(server, response_id)


def test_recovery_leaves_a_live_server_its_work(server: Server) -> None:
    response_id = server.openai().responses.create(input=script({"gate": "live-gate"}), background=True).id
    assert "Freed 0 responses, ended 0" in printed(server.managed("recover_responses", "--settle"))
    server.open_gate("live-gate")
    assert server.ended(response_id)["status"] == "completed"


def test_a_healthy_server_passes_the_doctor(server: Server) -> None:
    server.home.chmod(0o700)
    out = printed(server.managed("doctor"))
    assert "FAIL" not in out
    for subject in ("settings", "home", "files", "database", "work", "terminal", "model", "mcp", "layer"):
        assert f" {subject} " in out, subject


def test_the_doctor_names_what_is_wrong_and_the_remedy(make_server: Callable[..., Server]) -> None:
    server = make_server(HERMES_PROVIDER="custom", HERMES_MODEL="m", HERMES_BASE_URL="http://127.0.0.1:1/v1")
    (server.home / "api_key").chmod(0o644)
    (server.home / "config.yaml").write_text("mcp_servers: {gone: {command: /nowhere/program}}")
    done = server.managed("doctor", "--timeout", "2")
    out = done.stdout.decode()
    assert done.returncode == 1
    assert f"FAIL files     other users can read api_key -> chmod 600 {server.home}/api_key" in out
    assert "FAIL model     http://127.0.0.1:1/v1 cannot be reached" in out
    assert "FAIL mcp       gone: " in out
    assert "3 checks failed" in done.stderr.decode(), out


def test_the_doctor_distinguishes_a_refused_key_from_a_good_one(
    make_server: Callable[..., Server], stub: ModelStub
) -> None:
    server = make_server(HERMES_PROVIDER="custom", HERMES_MODEL="m", HERMES_BASE_URL=stub.url)
    out = server.managed("doctor", "--timeout", "2").stdout.decode()
    assert " model     " in out
    assert "answers in" in out


def test_a_setting_that_can_not_be_read_is_one_line(server: Server) -> None:
    server.env["HERMES_RETENTION_DAYS"] = "soon"
    done = server.managed("doctor")
    del server.env["HERMES_RETENTION_DAYS"]
    assert done.returncode == 1
    assert done.stderr.decode() == "FAIL settings  HERMES_RETENTION_DAYS must be a whole number, not 'soon'.\n"
