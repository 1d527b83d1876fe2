"""What a caller without a key learns from health, status and metrics."""

import socket
from collections.abc import Callable

import httpx
import pytest

from tests.support.people import create_key
from tests.support.server import Server, eventually
from tests.support.staff import STAFF_PASSWORD, logged_in, make_staff

pytestmark = pytest.mark.any_database

ROUTES = ("/health/detailed", "/api/status", "/metrics")
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
PROXY_HEADERS = (
    {"Via": "1.1 proxy"},
    {"Forwarded": "for=192.0.2.1"},
    {"X-Forwarded-For": "192.0.2.1"},
    {"X-Forwarded-Host": "hermes.example"},
    {"X-Forwarded-Proto": "https"},
    {"X-Real-IP": "192.0.2.1"},
)


def get(server: Server, path: str, key: str = "", **headers: str) -> httpx.Response:
    sent = {**headers, "Authorization": f"Bearer {key}"} if key else headers
    return httpx.get(f"{server.url}{path}", headers=sent, timeout=30)


def assert_public(server: Server, client: httpx.Client) -> None:
    health = client.get("/health/detailed")
    assert (health.status_code, tuple(health.json())) == (200, HERMES_FIELDS)
    assert health.json()["pid"] is None
    assert health.json()["exit_reason"] is None
    status = client.get("/api/status")
    assert status.status_code == 200
    for name in ("hermes_home", "config_path", "gateway_pid", "gateway_health_url"):
        assert name not in status.json()
    for answer in (health, status):
        assert str(server.home) not in answer.text
        assert socket.gethostname() not in answer.text
        assert "127.0.0.1" not in answer.text
    refused = client.get("/metrics")
    assert (refused.status_code, refused.json()["error"]["code"]) == (401, "invalid_api_key")


def assert_full(client: httpx.Client) -> None:
    assert client.get("/health/detailed").json()["readiness"]["checks"]
    assert client.get("/api/status").json()["hermes_home"]
    assert "hermes_streams_open" in client.get("/metrics").text


def test_without_a_key_hermes_own_fields_and_nothing_more(server: Server) -> None:
    eventually(lambda: get(server, "/api/status").json()["gateway_running"])
    with httpx.Client(base_url=server.url, timeout=30) as stranger:
        assert_public(server, stranger)
    with server.http() as root:
        assert_full(root)
    tenant = create_key(server, "monitor")
    with server.http(tenant) as keyed:
        assert_full(keyed)
    for path in ROUTES:
        assert get(server, path, key="hs-wrong").status_code == 401, path


@pytest.mark.parametrize("headers", PROXY_HEADERS, ids=str)
def test_through_a_proxy_each_route_needs_a_key(server: Server, headers: dict[str, str]) -> None:
    for path in ROUTES:
        refused = get(server, path, **headers)
        assert (refused.status_code, refused.json()["error"]["code"]) == (401, "invalid_api_key"), path
        assert get(server, path, key=server.key, **headers).status_code == 200, path


def test_staff_need_the_permission_to_view_responses(server: Server) -> None:
    make_staff(server, "monitor-staff")
    with logged_in(server, "monitor-staff", STAFF_PASSWORD) as operator:
        assert_public(server, operator.client)
        assert operator.client.get("/health/detailed", headers={"Via": "1.1 proxy"}).status_code == 401
    make_staff(server, "monitor-viewer", "view_response")
    with logged_in(server, "monitor-viewer", STAFF_PASSWORD) as operator:
        assert_full(operator.client)
        assert operator.client.get("/metrics", headers={"Via": "1.1 proxy"}).status_code == 200


def test_a_setting_opens_them_to_direct_connections(make_server: Callable[..., Server]) -> None:
    server = make_server(HERMES_OPEN_MONITORING="on")
    with httpx.Client(base_url=server.url, timeout=30) as stranger:
        assert_full(stranger)
        for path in ROUTES:
            assert stranger.get(path, headers={"Via": "1.1 proxy"}).status_code == 401, path


def test_without_authentication_the_details_still_need_the_root_key(
    make_server: Callable[..., Server],
) -> None:
    server = make_server(HERMES_AUTH="off")
    with httpx.Client(base_url=server.url, timeout=30) as stranger:
        assert_public(server, stranger)
        for path in ROUTES:
            assert stranger.get(path, headers={"Via": "1.1 proxy"}).status_code == 401, path
    with server.http() as root:
        assert_full(root)
