"""``manage.py cluster``: one command that runs all, and one key that ends all."""

import os
import re
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from django.core.management import CommandError, call_command
from django.test import override_settings

from gateway_app.management.local_cluster.programs import find_program
from gateway_app.management.local_cluster.proxy import Proxy
from tests.support.checker import check_log
from tests.support.cluster import SHORT_LEASES
from tests.support.ports import free_port
from tests.support.server import Server, created_id, eventually, script, streaming, text
from tests.support.stored_rows import stored_rows
from tests.support.terminal_session import TerminalSession, processes_with
from tests.support.websockets import socket

GATED = script({"say": "before "}, {"gate": "go"}, {"say": "after"})


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    for program in ("initdb", "redis-server", "nginx"):
        if find_program(program) is None:
            pytest.skip(f"{program} is not on this machine: apt-get install postgresql redis-server nginx-light")
    given = {**Server(tmp_path / "home", **SHORT_LEASES).env, "API_SERVER_PORT": str(free_port())}
    for name in ("DATABASE_URL", "REDIS_URL"):
        given.pop(name, None)
    return given


@pytest.fixture
def data() -> Iterator[Path]:
    """Not in pytest's folders, which are closed to the user of PostgreSQL."""
    folder = Path(f"/tmp/hermes-cluster-{os.getpid()}")
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def start(environment: dict[str, str], data: Path) -> Iterator[Callable[..., TerminalSession]]:
    started: list[TerminalSession] = []

    def run(*options: str) -> TerminalSession:
        command = [sys.executable, "manage.py", "cluster", "--data", str(data), *options]
        started.append(TerminalSession(command, environment))
        return started[-1]

    yield run
    for session in started:
        session.close()


def behind_proxy(environment: dict[str, str], session: TerminalSession) -> Server:
    """The cluster as its clients see it."""
    server = Server(Path(environment["HERMES_HOME"]))
    server.port = int(environment["API_SERVER_PORT"])
    server.url = f"http://127.0.0.1:{server.port}"
    port = re.search(r"PostgreSQL: port (\d+)", session.output)
    assert port is not None
    password = (server.home / "cluster" / "postgresql_password").read_text().strip()
    server.env["DATABASE_URL"] = f"postgres://hermes:{password}@127.0.0.1:{port[1]}/hermes"
    return server


def test_a_stream_through_the_proxy_outlives_its_worker_and_ctrl_c_ends_every_process(
    start: Callable[..., TerminalSession], environment: dict[str, str], data: Path
) -> None:
    session = start("--web", "1", "--workers", "2")
    session.wait_for("Ctrl-C stops all.")
    server = behind_proxy(environment, session)
    with streaming(server, model="hermes-agent", input=GATED) as (_, received):
        response_id = created_id(next(received))
        eventually(lambda: text(server.body(response_id)) == "before ")
        os.kill(worker_of(server, response_id), signal.SIGKILL)
        session.wait_for("ended (SIGKILL); starting it again")
        server.open_gate("go")
        assert list(received)[-1] == b"data: [DONE]\n\n"
    assert "after" in text(server.ended(response_id))
    check_log(server, response_id)
    with socket(server) as connection:
        assert connection.ask(model="hermes-agent", input=script({"say": "by socket"}))["type"] == "response.completed"
    running = stored_rows(server, "runtimeprocess", "pid", role="worker", state="running")
    os.kill(running[0][0], signal.SIGTERM)
    session.wait_for("ended (exit code 0); it stays out")
    server.kill()
    session.press_ctrl_c()
    assert session.exit_code() == 0, session.output
    assert "All have ended." in session.output
    assert processes_with(environment["HERMES_HOME"]) == []
    assert not (data / "postmaster.pid").exists()


def worker_of(server: Server, response_id: str) -> int:
    [(owner,)] = stored_rows(server, "response", "lease_owner", id=response_id)
    [(role, pid)] = stored_rows(server, "runtimeprocess", "role", "pid", id=owner)
    assert role == "worker"
    return int(pid)


class Unavailable(BaseHTTPRequestHandler):
    """A web process while PostgreSQL is away."""

    def do_GET(self) -> None:
        self.send_response(503)
        self.send_header("Retry-After", "1")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@contextmanager
def unavailable() -> Iterator[int]:
    """The port of such a web process."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Unavailable)
    threading.Thread(target=server.serve_forever, args=(0.05,)).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


def test_the_proxy_takes_no_web_process_for_gone_that_answers_503(tmp_path: Path) -> None:
    if find_program("nginx") is None:
        pytest.skip("nginx is not on this machine: apt-get install nginx-light")
    with unavailable() as first, unavailable() as second:
        port = free_port()
        proxy = Proxy(tmp_path / "nginx.log", port, [first, second], print)
        proxy.child.start()
        try:
            proxy.child.wait_until_ready()
            for _ in range(6):
                refused = httpx.get(f"http://127.0.0.1:{port}/v1/models")
                assert (refused.status_code, refused.headers.get("retry-after")) == (503, "1")
        finally:
            proxy.child.kill()
            proxy.remove_files()


def test_nothing_is_left_when_the_command_itself_is_killed(
    start: Callable[..., TerminalSession], environment: dict[str, str]
) -> None:
    environment["DATABASE_URL"] = "postgres://127.0.0.1:1/none"
    session = start()
    session.wait_for("Redis: port")
    session.kill()
    eventually(lambda: processes_with(environment["HERMES_HOME"]) == [], 20, "the end of all processes")


def test_sqlite_and_addresses_of_other_machines_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with override_settings(API_SERVER_HOST="0.0.0.0"), pytest.raises(CommandError, match="unset API_SERVER_HOST"):
        call_command("cluster")
    monkeypatch.setenv("DATABASE_URL", "sqlite:///file")
    with pytest.raises(CommandError, match="DATABASE_URL names SQLite"):
        call_command("cluster")
