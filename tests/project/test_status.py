"""``/api/status``: the gateway here, or the one elsewhere that answers in its place."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from gateway_app.operations.monitoring.remote import base_url
from tests.support.browser import credentials
from tests.support.ports import free_port
from tests.support.server import Server, eventually
from tests.support.staff import log_in

pytestmark = pytest.mark.any_database

RETIRE = "from gateway_app.models import RuntimeProcess; RuntimeProcess.objects.update(state='stopped')"


def status(server: Server) -> dict[str, Any]:
    with server.http() as client:
        answer = client.get("/api/status")
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def without_gateway(server: Server) -> Server:
    """Its process is written down as stopped, as where only the pages are served."""
    eventually(lambda: status(server)["gateway_running"])
    server.manage("shell", "-v0", "-c", RETIRE)
    return server


def pid(server: Server) -> int:
    assert server.process is not None
    return server.process.pid


@pytest.mark.parametrize(
    "given",
    [f"http://host/base{suffix}{slash}" for suffix in ("", "/health", "/health/detailed") for slash in ("", "/")],
)
def test_either_address_of_a_gateway_will_do(given: str) -> None:
    assert base_url(given) == "http://host/base"


def test_a_gateway_here_is_reported_and_no_other_is_asked(make_server: Callable[..., Server]) -> None:
    remote = make_server()
    here = make_server(GATEWAY_HEALTH_URL=remote.url)
    # Until its process is registered, the remote one is reported.
    reply = eventually(lambda: (found := status(here))["gateway_pid"] and found)
    assert (reply["gateway_pid"], reply["gateway_is_remote"], reply["gateway_state"]) == (pid(here), False, "running")
    assert reply["gateway_health_url"] == remote.url
    assert reply["gateway_platforms"] == {"api_server": {"state": "connected"}}
    assert (reply["provider"], reply["model"]) == ("builtin", None)


def test_without_one_here_the_remote_one_is_asked(make_server: Callable[..., Server]) -> None:
    remote = make_server()
    here = without_gateway(make_server(GATEWAY_HEALTH_URL=f"{remote.url}/health/", GATEWAY_HEALTH_KEY=remote.key))
    reply = status(here)
    assert (reply["gateway_running"], reply["gateway_is_remote"]) == (True, True)
    assert (reply["gateway_pid"], reply["gateway_state"]) == (pid(remote), "running")
    assert reply["gateway_updated_at"]
    with httpx.Client(base_url=here.url, timeout=30, follow_redirects=True) as staff:
        log_in(staff, *credentials(here))
        shown = f"at {remote.url}/health/, pid {pid(remote)}"
        eventually(lambda: shown in staff.get("/dashboard/now").text)


def test_a_remote_that_asks_for_a_key_gets_it(make_server: Callable[..., Server]) -> None:
    remote = make_server(API_SERVER_HOST="0.0.0.0")
    here = without_gateway(make_server(GATEWAY_HEALTH_URL=remote.url, GATEWAY_HEALTH_KEY=remote.key))
    assert status(here)["gateway_pid"] == pid(remote)


def test_without_the_key_a_remote_on_loopback_is_known_to_run(make_server: Callable[..., Server]) -> None:
    remote = make_server()
    here = without_gateway(make_server(GATEWAY_HEALTH_URL=remote.url))
    found = status(here)
    assert (found["gateway_running"], found["gateway_pid"], found["gateway_state"]) == (True, None, "running")
    assert found["gateway_updated_at"]
    public = httpx.get(f"{here.url}/api/status", timeout=30)
    assert (public.json()["gateway_running"], remote.url in public.text) == (True, False)


def test_without_the_key_plain_health_says_that_it_runs(make_server: Callable[..., Server]) -> None:
    remote = make_server(API_SERVER_HOST="0.0.0.0")
    here = without_gateway(make_server(GATEWAY_HEALTH_URL=remote.url))
    reply = status(here)
    assert (reply["gateway_running"], reply["gateway_pid"], reply["gateway_state"]) == (True, None, "running")


def test_no_gateway_anywhere_is_reported_without_an_error(make_server: Callable[..., Server]) -> None:
    unreachable = f"http://127.0.0.1:{free_port()}"
    here = without_gateway(make_server(GATEWAY_HEALTH_URL=unreachable, GATEWAY_HEALTH_TIMEOUT="0.5"))
    reply = status(here)
    assert (reply["gateway_running"], reply["gateway_pid"], reply["gateway_state"]) == (False, None, "stopped")
    rename = "ALTER TABLE gateway_app_runtimeprocess RENAME TO elsewhere"
    here.manage("shell", "-v0", "-c", f"from django.db import connection; connection.cursor().execute('{rename}')")
    reply = status(here)
    assert (reply["gateway_running"], reply["gateway_state"], reply["active_sessions"]) == (False, None, None)
