"""Without a working bubblewrap there is no terminal, and the server reports why."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.server import (
    Server,
    eventually,
    script,
    text,
)

pytestmark = pytest.mark.any_database
REMEDY = "HERMES_TERMINAL"


@pytest.fixture
def programs(tmp_path: Path) -> str:
    """A path with a bubblewrap that can make no namespaces, as in many containers."""
    folder = tmp_path / "programs"
    folder.mkdir()
    program = folder / "bwrap"
    program.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    program.chmod(0o755)
    return f"{folder}:/usr/bin:/bin"


def tool_names(server: Server) -> set[str]:
    with server.http() as client:
        toolsets: Any = client.get("/v1/toolsets").json()
    return {name for entry in toolsets["data"] for name in entry["tools"]}


def test_the_terminal_is_not_offered(make_server: Callable[..., Server], programs: str) -> None:
    server = make_server(PATH=programs)
    assert "terminal" not in tool_names(server)
    assert "read_file" in tool_names(server)
    with server.http() as client:
        asked = {"input": script({"call": "terminal", "arguments": {"command": "id"}})}
        body = client.post("/v1/responses", json=asked).json()
        assert body["status"] == "completed"
        assert "there is no tool named 'terminal'" in text(body)
        assert client.get(f"/v1/responses/{body['id']}/approval").json()["pending"] == []
        found = client.get("/health/detailed").json()
    assert found["degraded"] == ["terminal"]
    assert REMEDY in found["readiness"]["checks"]["terminal"]["remedy"]
    eventually(lambda: "The terminal is not offered" in server.log)
    [line] = [line for line in server.log.splitlines() if "The terminal is not offered" in line]
    assert REMEDY in line
    doctor = server.managed("doctor").stdout.decode()
    assert "bubblewrap is missing or does not work here: there is no terminal" in doctor


@pytest.mark.parametrize("mode", ["unsandboxed", "off"])
def test_where_no_sandbox_is_wanted_none_is_missed(
    make_server: Callable[..., Server], programs: str, mode: str
) -> None:
    server = make_server(PATH=programs, HERMES_TERMINAL=mode)
    assert ("terminal" in tool_names(server)) == (mode == "unsandboxed")
    with server.http() as client:
        found = client.get("/health/detailed").json()
        if mode == "unsandboxed":
            asked = {"input": script({"call": "terminal", "arguments": {"command": "echo ran"}})}
            assert "ran" in text(client.post("/v1/responses", json=asked).json())
    assert found["readiness"]["checks"]["terminal"]["status"] == "ok"
    assert "The terminal is not offered" not in server.log
