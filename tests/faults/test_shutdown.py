"""SIGTERM and Ctrl-C: finish what fits, leave the rest to the next start, and notify the readers."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway_app.runtime.signals import ECHO_SECS
from tests.support.mcp_harness import SERVER as MCP_SERVER
from tests.support.mcp_harness import is_alive
from tests.support.other_servers import PlainDaphne, Uvicorn
from tests.support.scripted_requests import call, effects
from tests.support.server import (
    NO_TLS,
    ROOT,
    Server,
    eventually,
    script,
    text,
)
from tests.support.shutdowns import EXIT_SECS, GOES_ON, Reader, stop_with_signal

pytestmark = [pytest.mark.any_database, pytest.mark.fault]

STREAMS = 20


@contextmanager
def background(server: Server, asked: str, **fields: Any) -> Iterator[str]:
    with server.http() as client:
        answer = client.post("/v1/responses", json={"input": asked, "background": True, **fields})
        yield answer.json()["id"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_what_fits_into_the_grace_is_finished(make_server: Callable[..., Server], number: int) -> None:
    server = make_server(HERMES_SHUTDOWN_GRACE="20")
    reader = Reader(server, input=GOES_ON)
    eventually(lambda: reader.has_read(b"before "))
    assert server.process is not None
    server.process.send_signal(number)
    eventually(lambda: "Shutting down" in server.log)
    server.open_gate("later")
    assert server.process.wait(10) == 0
    reader.join(5)
    assert reader.error is None
    assert reader.seen[-1] == b"data: [DONE]\n\n"
    assert reader.has_read(b"response.completed")


@pytest.mark.parametrize("grace", [0, 1])
def test_twenty_readers_get_a_notice_and_find_the_rest_after_the_next_start(
    make_server: Callable[..., Server], grace: int
) -> None:
    server = make_server(HERMES_SHUTDOWN_GRACE=str(grace), HERMES_MAX_ATTEMPTS="1")
    readers = [Reader(server, input=GOES_ON) for _ in range(STREAMS)]
    eventually(lambda: all(reader.has_read(b"before ") for reader in readers), 20)
    assert stop_with_signal(server) < grace + EXIT_SECS
    assert all(reader.was_cut_with_notice() for reader in readers)
    assert server.query("SELECT DISTINCT lease_owner, crashes FROM responses_app_response") == [("", 0)]
    server.start()
    server.open_gate("later")
    for reader in readers:
        assert text(server.ended(reader.response_id)) == "before after"
        seen = [frame for frame in reader.seen if not frame.startswith(b":")]
        assert server.replay(reader.response_id)[: len(seen)] == seen


def test_a_half_sent_request_holds_up_no_shutdown(make_server: Callable[..., Server]) -> None:
    server = make_server()
    reader = Reader(server, input=GOES_ON)
    eventually(lambda: reader.has_read(b"before "))
    with socket.create_connection(("127.0.0.1", server.port)) as half:
        half.sendall(b"POST /v1/responses HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
        assert stop_with_signal(server) < 1 + EXIT_SECS
    assert reader.was_cut_with_notice()
    assert "Traceback" not in server.log


def test_while_it_drains_new_requests_are_refused(make_server: Callable[..., Server]) -> None:
    server = make_server(HERMES_SHUTDOWN_GRACE="20")
    reader = Reader(server, input=GOES_ON)
    eventually(lambda: reader.has_read(b"before "))
    with server.http() as kept, server.http() as other:
        assert [client.get("/health").status_code for client in (kept, other)] == [200, 200]
        assert server.process is not None
        server.process.send_signal(signal.SIGTERM)
        eventually(lambda: "Shutting down" in server.log)
        for refused in (kept.get("/health"), other.post("/v1/responses", json={"input": "too late"})):
            assert refused.status_code == 503
            assert refused.json()["error"]["code"] == "server_shutting_down"
            assert int(refused.headers["retry-after"]) > 0
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{server.url}/health")
    server.open_gate("later")
    assert server.process.wait(10) == 0


def test_the_second_signal_ends_it_at_once(make_server: Callable[..., Server]) -> None:
    server = make_server(HERMES_SHUTDOWN_GRACE="60")
    with background(server, GOES_ON) as response_id:
        eventually(lambda: text(server.body(response_id)) == "before ")
    assert server.process is not None
    server.process.send_signal(signal.SIGINT)
    eventually(lambda: "Shutting down" in server.log)
    time.sleep(2 * ECHO_SECS)  # until then it might be the same one, passed on
    assert stop_with_signal(server, signal.SIGINT) < 1
    server.start()
    server.open_gate("later")
    assert text(server.ended(response_id)) == "before after"


def test_a_signal_that_make_passes_on_is_not_a_second_one(make_server: Callable[..., Server]) -> None:
    """A supervisor signals the whole group; make then signals its child again."""
    server = make_server()
    server.kill()
    command = ["make", "run", f"PYTHON={sys.executable}"]
    with subprocess.Popen(command, cwd=ROOT, env=server.env, start_new_session=True) as group:
        eventually(lambda: is_answering(server), 30, "the first answer")
        reader = Reader(server, input=GOES_ON)
        eventually(lambda: reader.has_read(b"before "))
        os.killpg(group.pid, signal.SIGTERM)
        group.wait(10)
    assert reader.was_cut_with_notice()
    assert server.query("SELECT state FROM gateway_app_runtimeprocess ORDER BY started_at DESC LIMIT 1") == [
        ("stopped",)
    ]


def is_answering(server: Server) -> bool:
    with suppress(httpx.TransportError):
        return httpx.get(f"{server.url}/health", verify=NO_TLS).status_code == 200
    return False


def test_a_running_program_is_ended_and_its_call_is_not_repeated(make_server: Callable[..., Server]) -> None:
    """It ignores SIGTERM, and leads a group of its own that would outlive the server."""
    server = make_server(HERMES_TERMINAL="unsandboxed", HERMES_SHUTDOWN_GRACE="0")
    command = "trap '' TERM; echo $$ > pid; echo once >> runs; while true; do sleep 0.1; done"
    with background(server, script({"call": "terminal", "arguments": {"command": command}})) as response_id:
        found = eventually(lambda: [*server.home.glob("workspaces/**/pid")], what="the program")
    pid = int(eventually(found[0].read_text))
    assert is_alive(pid)
    assert stop_with_signal(server) < EXIT_SECS
    assert not is_alive(pid)
    server.start()
    body = server.ended(response_id)
    assert "Interrupted" in body["output"][1]["output"]
    assert (found[0].parent / "runs").read_text() == "once\n"


def test_mcp_servers_end_with_it(make_server: Callable[..., Server], tmp_path: Path) -> None:
    server = make_server()
    server.kill()
    servers = {"files": {"command": sys.executable, "args": [str(ROOT / MCP_SERVER), "stdio"]}}
    (server.home / "config.yaml").write_text(f"mcp_servers: {servers!r}\n")
    server.start()
    eventually(lambda: "MCP server files is ready" in server.log, 20)
    assert server.process is not None
    found = subprocess.run(["pgrep", "-P", str(server.process.pid)], capture_output=True, text=True).stdout.split()
    assert found
    assert stop_with_signal(server) < 1 + EXIT_SECS
    assert not any(is_alive(int(pid)) for pid in found)


def test_a_plain_post_gets_the_address_of_its_response_and_must_not_be_repeated(
    make_server: Callable[..., Server],
) -> None:
    server = make_server()
    answers: list[httpx.Response] = []

    def post() -> None:
        with server.http() as client:
            answers.append(client.post("/v1/responses", json={"input": GOES_ON}))

    thread = threading.Thread(target=post)
    thread.start()
    eventually(lambda: server.model_calls("before "))
    stop_with_signal(server)
    thread.join(10)
    [(response_id,)] = server.query("SELECT id FROM responses_app_response")
    assert answers[0].status_code == 503
    assert answers[0].headers["x-should-retry"] == "false"
    assert response_id in answers[0].json()["error"]["message"]


@pytest.mark.parametrize("kind", [Server, Uvicorn])
def test_a_shutdown_is_no_client_that_left(make_server: Callable[..., Server], kind: type[Server]) -> None:
    """Of a chat that is not stored for its client, what it asked for ends with the connection; but not with ours."""
    server = make_server(kind)
    server.manage("shell", "-v0", "-c", "from gateway_app.operations.first_start import ensure_admin; ensure_admin()")
    answers: list[httpx.Response] = []

    def post() -> None:
        body = {"messages": [{"role": "user", "content": GOES_ON}]}
        with server.http() as client:
            answers.append(client.post("/v1/chat/completions", json=body))

    thread = threading.Thread(target=post)
    thread.start()
    eventually(lambda: server.model_calls("before "))
    stop_with_signal(server)
    thread.join(10)
    assert answers[0].json()["error"]["code"] == "response_interrupted"
    server.start()
    server.open_gate("later")
    [(response_id,)] = server.query("SELECT id FROM responses_app_response")
    assert text(server.ended(response_id)) == "before after"


@pytest.mark.parametrize(("env", "store"), [({"HERMES_RECOVERY": "incomplete"}, True), ({}, False)])
def test_what_can_not_go_on_ends_for_its_reader(
    make_server: Callable[..., Server], env: dict[str, str], store: bool
) -> None:
    server = make_server(**env)
    reader = Reader(server, input=GOES_ON, store=store)
    eventually(lambda: reader.has_read(b"before "))
    assert stop_with_signal(server) < 1 + EXIT_SECS
    reader.join(5)
    assert reader.error is None
    assert b"server_interrupted" in reader.seen[-2]
    assert reader.seen[-1] == b"data: [DONE]\n\n"
    assert server.query("SELECT status, incomplete_reason FROM responses_app_response") == [
        ("incomplete", "server_interrupted")
    ]


def test_under_uvicorn_it_is_the_same(make_server: Callable[..., Server]) -> None:
    server = make_server(Uvicorn)
    server.manage("shell", "-v0", "-c", "from gateway_app.operations.first_start import ensure_admin; ensure_admin()")
    reader = Reader(server, input=GOES_ON)
    eventually(lambda: reader.has_read(b"before "))
    assert stop_with_signal(server) < 1 + EXIT_SECS
    assert reader.was_cut_with_notice()
    assert server.query("SELECT lease_owner, crashes FROM responses_app_response") == [("", 0)]
    server.start()
    server.open_gate("later")
    assert text(server.ended(reader.response_id)) == "before after"


def test_under_plain_daphne_nothing_durable_is_lost(make_server: Callable[..., Server]) -> None:
    server = make_server(PlainDaphne)
    server.manage("shell", "-v0", "-c", "from gateway_app.operations.first_start import ensure_admin; ensure_admin()")
    reader = Reader(server, input=script(call("effect", text="daphne", gate="x")))
    with background(server, GOES_ON) as other:
        eventually(lambda: text(server.body(other)) == "before ")
    eventually(lambda: effects(server, "daphne"))
    stop_with_signal(server)
    server.start()
    server.open_gate("later")
    server.open_gate("x")
    assert text(server.ended(other)) == "before after"
    server.ended(reader.response_id)
    assert effects(server, "daphne") == 1
