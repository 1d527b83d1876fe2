"""MCP servers as tools: real servers over pipes and sockets, and what happens when they misbehave."""

import asyncio
import gc
import json
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from gateway_app.agent.tools import ToolContext
from gateway_app.config.mcp import McpServer
from gateway_app.tools.mcp.connection import Limits
from gateway_app.tools.mcp.toolset import McpToolset
from tests.support.mcp_harness import (
    QUICK,
    Cast,
    HttpServer,
    children,
    eventually,
    is_alive,
    local,
    raw,
)
from tests.support.server import free_port

Start = Callable[..., Cast]


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    started: list[McpToolset] = []

    def begin(*servers: McpServer, limits: Limits = QUICK) -> Cast:
        toolset = McpToolset(servers, limits)
        toolset.start()
        started.append(toolset)
        return Cast(toolset)

    yield begin
    for toolset in started:
        await toolset.stop()


@pytest.fixture
def http_server(tmp_path: Path) -> Iterator[HttpServer]:
    server = HttpServer(tmp_path / "mcp.log")
    yield server
    server.kill()


@pytest.fixture(params=["stdio", "http"])
async def cast(request: pytest.FixtureRequest, start: Start, http_server: HttpServer) -> Cast:
    """A ready toolset over each transport."""
    cast = start(local() if request.param == "stdio" else http_server.start())
    await cast.ready()
    return cast


async def test_tools_appear_as_the_server_describes_them(cast: Cast) -> None:
    add = cast.tool("files.add")
    assert add.description == "Add two numbers."
    assert add.parameters["required"] == ["a", "b"]
    assert (add.server_label, add.time_limit_secs, add.asks_approval) == ("files", 120, None)
    assert add.is_replay_safe
    assert cast.tool("files.environment").is_replay_safe
    assert not cast.tool("files.fail").is_replay_safe
    assert cast.state("files") == {"label": "files", "state": "ready", "tools": 8, "error": ""}


async def test_results_are_text(cast: Cast) -> None:
    assert await cast.call("files.add", a=2, b=3) == "5"
    assert json.loads(await cast.call("files.whoami"))["pid"] > 0
    assert (await cast.call("files.picture")).splitlines() == [
        "a dot",
        "[image, image/png, 5 bytes]",
        "[resource file:///note.txt, text/plain, 4 characters]",
        "kept",
        "[link to file:///big.bin, unknown type, 7 bytes]",
    ]


async def test_progress_is_reported_as_it_comes(cast: Cast) -> None:
    assert await cast.call("files.count", to=3) == "counted"
    assert cast.reported == ["1/3\n", "step 2\n", "step 3\n"]


async def test_a_failure_tells_what_the_tool_said(cast: Cast) -> None:
    with pytest.raises(RuntimeError, match="the disk is full"):
        await cast.call("files.fail")
    with pytest.raises(RuntimeError, match=r"validation error|missing|required|refused"):
        await cast.call("files.add", a=1)


async def test_cancelling_a_call_cancels_it_on_the_server(cast: Cast, tmp_path: Path) -> None:
    call = asyncio.create_task(cast.call("files.wait", folder=str(tmp_path)))
    await eventually((tmp_path / "started").exists)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await eventually((tmp_path / "cancelled").exists)
    assert await cast.call("files.add", a=1, b=1) == "2"


async def test_a_server_killed_in_mid_call_is_an_error_and_comes_back(
    cast: Cast, http_server: HttpServer, tmp_path: Path
) -> None:
    pid = await cast.pid()
    call = asyncio.create_task(cast.call("files.wait", folder=str(tmp_path)))
    await eventually((tmp_path / "started").exists)
    old = cast.tool("files.add")
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(RuntimeError, match="files went away during the call"):
        await asyncio.wait_for(call, 20)
    if http_server.process is not None:
        await eventually(lambda: cast.state("files")["state"] != "ready")
        with pytest.raises(RuntimeError, match="files is not connected"):
            await old.run({"a": 1, "b": 1}, ToolContext(Path(), print))
        http_server.kill()
        http_server.start()
    await eventually(lambda: "files.add" in cast.names())
    assert await old.run({"a": 1, "b": 1}, ToolContext(Path(), print)) == "2"
    assert await cast.pid() != pid


async def test_an_http_server_that_restarts_unnoticed_is_found_again(start: Start, http_server: HttpServer) -> None:
    cast = start(http_server.start())
    await cast.ready()
    before = await cast.pid()
    http_server.kill()
    await eventually(lambda: cast.names() == set())
    http_server.start()
    await eventually(lambda: cast.names() != set())
    assert await cast.pid() != before


async def test_list_changed_adds_a_tool(cast: Cast) -> None:
    assert "files.grown" not in cast.names()
    await cast.call("files.grow")
    await eventually(lambda: "files.grown" in cast.names())
    assert await cast.call("files.grown", a=1, b=2) == "3"


async def test_the_time_limit_of_a_server_ends_a_call(start: Start, tmp_path: Path) -> None:
    cast = start(local(timeout_secs=0.5, approval="client"))
    await cast.ready()
    assert cast.tool("files.wait").time_limit_secs == 0.5
    with pytest.raises(RuntimeError, match=r"did not answer within 0\.5 s"):
        await cast.call("files.wait", folder=str(tmp_path))
    asks = cast.tool("files.add").asks_approval
    assert asks is not None
    assert cast.tool("files.add").approver == "client"
    assert "files" in asks({})


async def test_a_child_gets_its_own_variables_and_none_of_ours(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERMES_API_KEY", "sk-not-for-children")
    cast = start(local(env={"GIVEN": "a value"}))
    await cast.ready()
    seen = await cast.call("files.environment")
    assert "a value" in seen
    assert "PATH" in seen
    assert "HERMES" not in seen
    assert "DJANGO" not in seen


async def test_servers_that_are_down_cost_only_their_tools(start: Start) -> None:
    missing = McpServer("missing", command="no-such-command-anywhere")
    refused = McpServer("refused", url=f"http://127.0.0.1:{free_port()}/mcp?key=very-secret")
    broken = McpServer("broken", command=sys.executable, args=("-c", "raise SystemExit('no token-1234')"))
    cast = start(missing, refused, McpServer("broken", broken.command, broken.args, {"T": "token-1234"}), local())
    await cast.ready()
    await eventually(lambda: all(cast.state(label)["error"] for label in ("missing", "refused", "broken")))
    assert cast.state("missing")["error"] == "there is no command no-such-command-anywhere"
    assert "no ***" in cast.state("broken")["error"]
    assert "very-secret" not in str(cast.toolset.states())
    assert {tool.server_label for tool in cast.toolset.tools()} == {"files"}


async def test_a_refusal_names_its_status(start: Start) -> None:
    seen: list[str | None] = []

    class Refusing(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append(self.headers.get("Authorization"))
            self.send_response(401)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as refusing:
        threading.Thread(target=refusing.serve_forever).start()
        url = f"http://127.0.0.1:{refusing.server_port}/mcp"
        cast = start(McpServer("closed", url=url, headers={"Authorization": "Bearer abc123"}))
        await eventually(lambda: cast.state("closed")["error"])
        refusing.shutdown()
    assert "HTTP 401 Unauthorized" in cast.state("closed")["error"]
    assert set(seen) == {"Bearer abc123"}


async def test_a_server_that_never_answers_is_given_up_and_tried_again(start: Start) -> None:
    limits = Limits(connect_secs=1, first_retry_secs=0.05, last_retry_secs=0.1)
    cast = start(raw("mute"), limits=limits)
    await eventually(lambda: cast.state("raw")["state"] == "down")
    assert "it does not answer" in cast.state("raw")["error"]
    assert "the raw server starts" in cast.state("raw")["error"]
    await eventually(lambda: cast.state("raw")["state"] == "connecting")


async def test_an_older_server_that_prints_garbage_and_pages_its_list(start: Start) -> None:
    cast = start(raw("garbage", "paged"))
    await cast.ready("raw")
    (odd,) = cast.names() - {"raw.alpha", "raw.beta"}
    assert odd.startswith("raw.odd_n_me_")
    assert await cast.call(odd) == "odd/näme was called"
    await cast.call("raw.beta")
    await eventually(lambda: "raw.gamma" in cast.names())


async def test_a_server_that_exits_at_the_newer_protocol_is_asked_in_the_older_one(start: Start) -> None:
    cast = start(raw("rude"))
    await cast.ready("raw")
    assert await cast.call("raw.alpha") == "alpha was called"


async def test_two_servers_may_have_tools_of_the_same_name(start: Start) -> None:
    cast = start(raw(label="one"), raw(label="two"))
    await cast.ready("one")
    await cast.ready("two")
    assert {"one.alpha", "two.alpha"} < cast.names()
    assert await cast.call("two.alpha") == "alpha was called"


async def test_nothing_is_left_after_stop(start: Start, tmp_path: Path) -> None:
    cast = start(local(), raw("stubborn"), raw("mute", label="mute"))
    await cast.ready()
    await cast.ready("raw")
    await eventually(lambda: len(children()) == 3)
    running = children()
    call = asyncio.create_task(cast.call("files.wait", folder=str(tmp_path)))
    await eventually((tmp_path / "started").exists)
    await asyncio.wait_for(cast.toolset.stop(), 20)
    with pytest.raises(RuntimeError, match="went away"):
        await call
    assert not any(is_alive(pid) for pid in running)
    assert cast.toolset.tools() == ()
    assert {state["state"] for state in cast.toolset.states()} == {"down"}


async def test_a_loop_that_ends_can_cancel_a_connection_at_any_moment() -> None:
    refused = McpServer("refused", url=f"http://127.0.0.1:{free_port()}/mcp")
    for turns in range(60):  # of the loop: some of them are in the middle of a failure
        McpToolset([refused], Limits(first_retry_secs=0.001, last_retry_secs=0.001)).start()
        (task,) = (task for task in asyncio.all_tasks() if task.get_name() == "mcp refused")
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait_for(asyncio.wait({task}), 10)


async def test_nothing_is_left_when_a_server_is_stopped_while_it_starts() -> None:
    for turns in range(40):  # of the loop: one of them is in the middle of the spawn
        toolset = McpToolset([raw("mute")], QUICK)
        toolset.start()
        for _ in range(turns // 2):
            await asyncio.sleep(0)
        await toolset.stop()
        assert children() == set()
    gc.collect()  # complains of pipes and processes that nobody closed
