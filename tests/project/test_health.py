"""``/health/detailed``: what monitors and the dashboard read."""

import re
import signal
import sqlite3
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from tests.support.browser import credentials
from tests.support.server import Server, eventually, script
from tests.support.staff import log_in

pytestmark = pytest.mark.any_database

HERMES_FIELDS = (
    "status",
    "platform",
    "gateway_state",
    "platforms",
    "active_agents",
    "exit_reason",
    "updated_at",
    "pid",
)


def detailed(server: Server) -> httpx.Response:
    headers = {"Authorization": f"Bearer {server.key}"}
    return httpx.get(f"{server.url}/health/detailed", headers=headers, timeout=30)


def states(server: Server) -> list[str]:
    return [process["state"] for process in detailed(server).json()["processes"]]


def test_it_says_what_runs_waits_and_lives(make_server: Callable[..., Server]) -> None:
    server = make_server(HERMES_MAX_CONCURRENT="1")
    with server.http() as client:
        for gate in ("one", "two"):
            client.post("/v1/responses", json={"input": script({"gate": gate}), "background": True})
    reply = eventually(lambda: (body := detailed(server).json())["work"]["running"] == 1 and body)
    assert [name for name in HERMES_FIELDS if name not in reply] == []
    assert (reply["status"], reply["gateway_state"], reply["active_agents"]) == ("ok", "running", 1)
    assert server.process is not None
    assert reply["pid"] == server.process.pid
    assert reply["work"]["queued"] == 1
    assert reply["work"]["oldest_queued_secs"] > 0
    assert reply["processes"][0]["state"] == "running"
    assert reply["storage"]["database_bytes"] > 0
    assert reply["readiness"]["checks"]["state_db"]["status"] == "ok"
    assert reply["mcp_servers"] == []


def test_a_process_that_fell_is_named(make_server: Callable[..., Server]) -> None:
    server = make_server()
    eventually(lambda: states(server) == ["running"])
    server.kill()
    server.start()
    eventually(lambda: states(server) == ["running", "lost"])
    assert detailed(server).json()["gateway_state"] == "running"


def test_on_an_open_address_it_needs_a_key(make_server: Callable[..., Server]) -> None:
    server = make_server(API_SERVER_HOST="0.0.0.0")
    assert httpx.get(f"{server.url}/health/detailed").status_code == 401
    assert detailed(server).status_code == 200


def test_an_mcp_server_that_is_down_degrades(make_server: Callable[..., Server]) -> None:
    server = make_server()
    server.kill()
    (server.home / "config.yaml").write_text("mcp_servers: {away: {command: /nonexistent-program}}\n")
    server.start()
    reply = eventually(lambda: (body := detailed(server).json())["degraded"] == ["mcp"] and body, 20)
    assert reply["status"] == "degraded"
    assert reply["mcp_servers"][0]["label"] == "away"
    assert reply["mcp_servers"][0]["state"] == "down"


def test_what_cannot_be_found_out_is_null_and_no_error(make_server: Callable[..., Server]) -> None:
    server = make_server()
    rename = "ALTER TABLE gateway_app_runtimeprocess RENAME TO elsewhere"
    server.manage("shell", "-v0", "-c", f"from django.db import connection; connection.cursor().execute('{rename}')")
    answer = detailed(server)
    reply = answer.json()
    assert answer.status_code == 200
    assert reply["degraded"][0] == "state_db"
    assert (reply["gateway_state"], reply["updated_at"], reply["processes"], reply["work"]) == (None, None, None, None)
    assert (reply["active_agents"], reply["platforms"]) == (0, {})


def test_every_check_is_there(server: Server) -> None:
    checks = detailed(server).json()["readiness"]["checks"]
    names = (
        "state_db",
        "home",
        "layer",
        "model",
        "disk",
        "gateway",
        "workers",
        "secrets",
        "background_queues",
        "writer",
        "log_formats",
        "terminal",
        "mcp",
        "platforms",
    )
    assert tuple(checks) == names
    assert (checks["model"]["provider"], checks["model"]["address"]) == ("builtin", None)
    assert checks["writer"]["lag_secs"] < 5


def test_a_temporary_database_is_reported_everywhere(tmp_path: Path) -> None:
    """Not even root can make a folder under /proc."""
    server = Server(tmp_path, DATABASE_URL="sqlite:////proc/hermes-data/hermes.sqlite3", TMPDIR=str(tmp_path))
    try:
        server.start()
        assert httpx.get(f"{server.url}/health").json()["status"] == "degraded"
        reply = eventually(lambda: (body := detailed(server).json())["degraded"] == ["home"] and body)
        assert reply["status"] == "degraded"
        assert "/proc/hermes-data" in reply["readiness"]["checks"]["home"]["error"]
        with httpx.Client(base_url=server.url, timeout=30, follow_redirects=True) as staff:
            assert "DEGRADED" not in staff.get("/admin/login/").text  # strangers do not see our folders
            log_in(staff, *credentials(server))
            for page in ("/", "/chat", "/admin/"):
                assert re.search(r'role="alert">DEGRADED: /proc/hermes-data', staff.get(page).text), page
    finally:
        server.kill()


def test_a_database_that_takes_no_writes_makes_the_writer_lag(make_server: Callable[..., Server]) -> None:
    server = make_server()
    if "DATABASE_URL" in server.env:
        pytest.skip("PostgreSQL locks rows, not the database")
    with sqlite3.connect(server.home / "hermes.sqlite3", isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        reply = eventually(lambda: "writer" in (body := detailed(server).json())["degraded"] and body, 20)
        assert reply["readiness"]["checks"]["writer"]["lag_secs"] >= 5
        other.execute("ROLLBACK")
    other.close()
    eventually(lambda: detailed(server).json()["status"] == "ok", 20)


def test_a_server_that_is_stopping_is_not_ready(make_server: Callable[..., Server]) -> None:
    server = make_server(HERMES_SHUTDOWN_GRACE="20")
    with server.http() as client:
        client.post("/v1/responses", json={"input": script({"gate": "stopping"}), "background": True})
        eventually(lambda: client.get("/health/detailed").json()["work"]["running"] == 1)
        assert server.process is not None
        server.process.send_signal(signal.SIGTERM)
        refused = eventually(lambda: (answer := client.get("/health/detailed")).status_code == 503 and answer)
        assert refused.json()["error"]["code"] == "server_shutting_down"
        server.open_gate("stopping")
