"""Turns in the first seconds after a start, servers that are missing, and images."""

import base64
import sys
from collections.abc import Callable

import pytest

from tests.support.mcp_harness import SERVER
from tests.support.model_stub import Call, Calls, Finish, ModelStub, Text
from tests.support.server import Server
from tests.support.stored_rows import stored_rows

pytestmark = pytest.mark.any_database
CONFIG = """
mcp_servers:
  slow:
    command: /bin/sh
    args: ["-c", "sleep 1; exec {python} {script} stdio"]
  gone:
    command: {python}
    args: ["-c", "raise SystemExit(3)"]
"""
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


@pytest.fixture
def started(make_server: Callable[..., Server], stub: ModelStub) -> Server:
    """A moment after its start, with one MCP server that takes a second and one that never comes up."""
    server = make_server(
        HERMES_PROVIDER="custom", HERMES_BASE_URL=stub.url, HERMES_MODEL="m", HERMES_MCP_START_SECS="60"
    )
    server.kill()
    (server.home / "config.yaml").write_text(CONFIG.format(python=sys.executable, script=SERVER))
    return server.start()


def test_the_first_turn_waits_for_servers_that_start_and_names_the_missing_ones(
    started: Server, stub: ModelStub
) -> None:
    response = started.openai().responses.create(model="hermes-agent", input="x")
    body = stub.asked[-1].body
    names = {tool["function"]["name"] for tool in body["tools"]}
    assert "slow-add" in names
    assert "not connected, so their tools are missing in this turn: gone." in body["messages"][0]["content"]
    [(deviations,)] = stored_rows(started, "response", "protocol_deviations", id=response.id)
    assert "no MCP server gone" in str(deviations)

    # -- so does a turn whose own tools are merged with those of the servers
    own = {"type": "function", "name": "own", "parameters": {"type": "object", "properties": {}}}
    for mode, is_named in (("merge", True), ("replace", False)):
        request = {"input": "x", "tools": [own]}
        with started.http() as client:
            client.post("/v1/responses", json=request, headers={"X-Hermes-Client-Tools": mode}).raise_for_status()
        body = stub.asked[-1].body
        names = {tool["function"]["name"] for tool in body["tools"]}
        assert ("slow-add" in names, "in this turn: gone." in str(body["messages"])) == (is_named, is_named)

    # -- images reach the model, and the client has the line that describes them
    stub.play(Calls((Call("call_1", "slow-picture", ("{}",)),)), Finish("tool_calls"))
    stub.play(Text("a dot"), Finish())
    seen = started.openai().responses.create(model="hermes-agent", input="look")
    assert "data:image/png;base64,aGVsbG8=" in str(stub.asked[-1].body["messages"])
    with started.http() as client:
        assert "aGVsbG8=" not in client.get(f"/v1/responses/{seen.id}").text
    [(images,)] = stored_rows(started, "toolevent", "images", response_id=seen.id)
    assert "aGVsbG8=" in images
    with started.http() as client:
        client.delete(f"/v1/responses/{seen.id}")
    assert stored_rows(started, "toolevent", "images", response_id=seen.id) == [("",)]

    # -- read_file shows one too
    encoded = base64.b64encode(PNG).decode()
    stub.play(Calls((Call("call_1", "list_files", ("{}",)),)), Finish("tool_calls"))
    started.openai().responses.create(model="hermes-agent", input="make the workspace")
    [workspace] = (started.home / "workspaces").glob("*/*/default")
    (workspace / "a.png").write_bytes(PNG)
    stub.play(Calls((Call("call_2", "read_file", ('{"path": "a.png"}',)),)), Finish("tool_calls"))
    stub.play(Text("a picture"), Finish())
    started.openai().responses.create(model="hermes-agent", input="look at the file")
    shown = str(stub.asked[-1].body["messages"])
    assert f"data:image/png;base64,{encoded}" in shown
    assert f"[an image, image/png, {len(PNG)} bytes]" in shown
