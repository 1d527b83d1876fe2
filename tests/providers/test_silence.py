"""How long a server may be silent, and how one that is gone is noticed."""

import socket
import threading
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from gateway_app.config.upstream_limits import is_nearby, read_limit_secs, stale_limit_secs
from gateway_app.providers.openai.transport import FRESH_CONNECTION, Transport
from tests.support.model_stub import Gate, ModelStub, Text
from tests.support.server import Server

PUBLIC = "https://api.openai.com/v1"


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST",
        "127.0.0.1",
        "127.8.8.8",
        "[::1]",
        "[::ffff:192.168.1.5]",
        "0.0.0.0",
        "10.0.0.7",
        "172.16.3.4",
        "192.168.178.20",
        "169.254.1.1",
        "100.100.20.3",  # Tailscale and other carrier-grade networks
        "[fd00::5]",
        "[fe80::1%eth0]",
        "ollama",
        "gpu-box.local",
        "gpu-box.local.",
        "model.localhost",
        "host.docker.internal",
        "gpu.lan",
        "gpu.home.arpa",
        "vllm.models.svc",
        "vllm.models.svc.cluster.local",
    ],
)
def test_addresses_nearby_have_half_an_hour(host: str) -> None:
    url = f"http://user:secret@{host}:11434/v1"
    assert is_nearby(url)
    assert (read_limit_secs(url, None), stale_limit_secs(url, None)) == (1800, 1800)


@pytest.mark.parametrize(
    "host", ["api.openai.com", "8.8.8.8", "172.32.0.1", "[2606:4700::1111]", "local.example.com", "internal.io", "["]
)
def test_public_addresses_keep_the_shorter_limits(host: str) -> None:
    url = f"https://{host}/v1"
    assert not is_nearby(url)
    assert (read_limit_secs(url, None), stale_limit_secs(url, None)) == (60, 180)


def test_a_setting_wins_everywhere() -> None:
    for url in (PUBLIC, "http://127.0.0.1/v1"):
        assert (read_limit_secs(url, 5), stale_limit_secs(url, 7)) == (5, 7)


@pytest.mark.any_database
def test_health_reports_the_limits(make_server: Callable[..., Server]) -> None:
    model = {"HERMES_PROVIDER": "custom", "HERMES_MODEL": "m", "HERMES_BASE_URL": "http://127.0.0.1:9/v1"}
    server = make_server(**model, HERMES_STREAM_STALE_TIMEOUT="99")
    with server.http() as client:
        check = client.get("/health/detailed").json()["readiness"]["checks"]["model"]
    assert check["silence_limits"] == {"read_secs": 1800, "stale_secs": 99}


# -- servers that are gone ---------------------------------------------------------------
async def options_of_connection(url: str, headers: dict[str, str]) -> dict[str, int]:
    async with httpx2.AsyncClient(transport=Transport(url)) as client:
        response = await client.send(
            client.build_request("POST", url, json={"stream": True}, headers=headers), stream=True
        )
        connection: Any = response.extensions["network_stream"].get_extra_info("socket")
        found = {"SO_KEEPALIVE": connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)}
        for name in ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT", "TCP_USER_TIMEOUT"):
            found[name] = connection.getsockopt(socket.IPPROTO_TCP, getattr(socket, name))
        await response.aclose()
    return found


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="only Linux has all of these options")
@pytest.mark.parametrize("headers", [{}, FRESH_CONNECTION], ids=["kept", "fresh"])
@pytest.mark.parametrize(
    "proxied",
    [{}, {"http_proxy": "stub"}, {"all_proxy": "stub"}, {"http_proxy": "127.0.0.1:1", "no_proxy": "stub's host"}],
    ids=["direct", "proxy", "proxy for all", "no proxy"],
)
async def test_every_connection_notices_a_peer_that_is_gone(
    stub: ModelStub, monkeypatch: pytest.MonkeyPatch, proxied: dict[str, str], headers: dict[str, str]
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    address = stub.url.removesuffix("/v1").removeprefix("http://")
    for name, value in proxied.items():
        monkeypatch.setenv(name, value.replace("stub's host", address.split(":")[0]).replace("stub", address))
    url = f"{stub.url}/chat/completions"
    if "stub" in proxied.values():
        url = "http://models.example.com/v1/chat/completions"
    stub.play(Text("a"), Gate(threading.Event()))  # while the answer lasts, its connection is known
    found = await options_of_connection(url, headers)
    assert found == {
        "SO_KEEPALIVE": 1,
        "TCP_KEEPIDLE": 30,
        "TCP_KEEPINTVL": 10,
        "TCP_KEEPCNT": 3,
        "TCP_USER_TIMEOUT": 60_000,
    }
    assert len(stub.asked) == 1
