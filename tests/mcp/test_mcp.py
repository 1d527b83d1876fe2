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
    HttpServer,
    StartedToolset,
    children,
    eventually,
    is_alive,
    local,
    raw,
)
from tests.support.ports import free_port
from tests.support.tool_runs import text_of

Start = Callable[..., StartedToolset]


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    started: list[McpToolset] = []

    def begin(*servers: McpServer, limits: Limits = QUICK) -> StartedToolset:
        toolset = McpToolset(servers, limits)
        toolset.start()
        started.append(toolset)
        return StartedToolset(toolset)

    yield begin
    for toolset in started:
        await toolset.stop()


@pytest.fixture
def http_server(tmp_path: Path) -> Iterator[HttpServer]:
    server = HttpServer(tmp_path / "mcp.log")
    yield server
    server.kill()


@pytest.fixture(params=["stdio", "http"])
async def started_toolset(request: pytest.FixtureRequest, start: Start, http_server: HttpServer) -> StartedToolset:
    """A ready toolset over each transport."""
    started_toolset = start(local() if request.param == "stdio" else http_server.start())
    await started_toolset.ready()
    return started_toolset


async def test_tools_appear_as_the_server_describes_them(started_toolset: StartedToolset) -> None:
    add = started_toolset.tool("files.add")
    assert add.description == "Add two numbers."
    assert add.parameters["required"] == ["a", "b"]
    assert (add.server_label, add.time_limit_secs, add.asks_approval) == ("files", 120, None)
    assert add.is_replay_safe
    assert started_toolset.tool("files.environment").is_replay_safe
    assert not started_toolset.tool("files.fail").is_replay_safe
    assert started_toolset.state("files") == {"label": "files", "state": "ready", "tools": 8, "error": ""}


async def test_results_are_text(started_toolset: StartedToolset) -> None:
    assert await started_toolset.call("files.add", a=2, b=3) == "5"
    assert json.loads(await started_toolset.call("files.whoami"))["pid"] > 0
    assert (await started_toolset.call("files.picture")).splitlines() == [
        "a dot",
        "[image, image/png, 5 bytes]",
        "[resource file:///note.txt, text/plain, 4 characters]",
        "kept",
        "[link to file:///big.bin, unknown type, 7 bytes]",
    ]
    assert started_toolset.images == ("data:image/png;base64,aGVsbG8=",)


async def test_progress_is_reported_as_it_comes(started_toolset: StartedToolset) -> None:
    assert await started_toolset.call("files.count", to=3) == "counted"
    assert started_toolset.reported == ["1/3\n", "step 2\n", "step 3\n"]


async def test_a_failure_has_the_message_of_the_tool(started_toolset: StartedToolset) -> None:
    with pytest.raises(RuntimeError, match="the disk is full"):
        await started_toolset.call("files.fail")
    with pytest.raises(RuntimeError, match=r"validation error|missing|required|refused"):
        await started_toolset.call("files.add", a=1)


async def test_cancelling_a_call_cancels_it_on_the_server(started_toolset: StartedToolset, tmp_path: Path) -> None:
    call = asyncio.create_task(started_toolset.call("files.wait", folder=str(tmp_path)))
    await eventually((tmp_path / "started").exists)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await eventually((tmp_path / "cancelled").exists)
    assert await started_toolset.call("files.add", a=1, b=1) == "2"


async def test_a_server_killed_in_mid_call_is_an_error_and_comes_back(
    started_toolset: StartedToolset, http_server: HttpServer, tmp_path: Path
) -> None:
    pid = await started_toolset.pid()
    call = asyncio.create_task(started_toolset.call("files.wait", folder=str(tmp_path)))
    await eventually((tmp_path / "started").exists)
    old = started_toolset.tool("files.add")
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(RuntimeError, match="files went away during the call"):
        await asyncio.wait_for(call, 20)
    if http_server.process is not None:
        await eventually(lambda: started_toolset.state("files")["state"] != "ready")
        with pytest.raises(RuntimeError, match="files is not connected"):
            await old.run({"a": 1, "b": 1}, ToolContext(Path(), print))
        http_server.kill()
        http_server.start()
    await eventually(lambda: "files.add" in started_toolset.names())
    assert await text_of(old.run({"a": 1, "b": 1}, ToolContext(Path(), print))) == "2"
    assert await started_toolset.pid() != pid


async def test_an_http_server_that_restarts_unnoticed_is_found_again(start: Start, http_server: HttpServer) -> None:
    started_toolset = start(http_server.start())
    await started_toolset.ready()
    before = await started_toolset.pid()
    http_server.kill()
    await eventually(lambda: started_toolset.names() == set())
    http_server.start()
    await eventually(lambda: started_toolset.names() != set())
    assert await started_toolset.pid() != before


async def test_list_changed_adds_a_tool(started_toolset: StartedToolset) -> None:
    assert "files.grown" not in started_toolset.names()
    await started_toolset.call("files.grow")
    await eventually(lambda: "files.grown" in started_toolset.names())
    assert await started_toolset.call("files.grown", a=1, b=2) == "3"


async def test_the_time_limit_of_a_server_ends_a_call(start: Start, tmp_path: Path) -> None:
    started_toolset = start(local(timeout_secs=0.5, approval="client"))
    await started_toolset.ready()
    assert started_toolset.tool("files.wait").time_limit_secs == 0.5
    with pytest.raises(RuntimeError, match=r"did not answer within 0\.5 s"):
        await started_toolset.call("files.wait", folder=str(tmp_path))
    asks = started_toolset.tool("files.add").asks_approval
    assert asks is not None
    assert started_toolset.tool("files.add").approver == "client"
    assert "files" in asks({})


async def test_a_child_gets_its_own_variables_and_none_of_ours(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERMES_API_KEY", "sk-not-for-children")
    started_toolset = start(local(env={"GIVEN": "a value"}))
    await started_toolset.ready()
    seen = await started_toolset.call("files.environment")
    assert "a value" in seen
    assert "PATH" in seen
    assert "HERMES" not in seen
    assert "DJANGO" not in seen


async def test_servers_that_are_down_cost_only_their_tools(start: Start) -> None:
    missing = McpServer("missing", command="no-such-command-anywhere")
    refused = McpServer("refused", url=f"http://127.0.0.1:{free_port()}/mcp?key=very-secret")
    broken = McpServer("broken", command=sys.executable, args=("-c", "raise SystemExit('no token-1234')"))
    started_toolset = start(
        missing, refused, McpServer("broken", broken.command, broken.args, {"T": "token-1234"}), local()
    )
    await started_toolset.ready()
    await eventually(lambda: all(started_toolset.state(label)["error"] for label in ("missing", "refused", "broken")))
    assert started_toolset.state("missing")["error"] == "there is no command no-such-command-anywhere"
    assert "no ***" in started_toolset.state("broken")["error"]
    assert "very-secret" not in str(started_toolset.toolset.states())
    assert {tool.server_label for tool in started_toolset.toolset.tools()} == {"files"}


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
        started_toolset = start(McpServer("closed", url=url, headers={"Authorization": "Bearer abc123"}))
        await eventually(lambda: started_toolset.state("closed")["error"])
        refusing.shutdown()
    assert "HTTP 401 Unauthorized" in started_toolset.state("closed")["error"]
    assert set(seen) == {"Bearer abc123"}


async def test_a_server_that_never_answers_is_given_up_and_tried_again(start: Start) -> None:
    limits = Limits(connect_secs=1, first_retry_secs=0.05, last_retry_secs=0.1)
    started_toolset = start(raw("mute"), limits=limits)
    await eventually(lambda: started_toolset.state("raw")["state"] == "down")
    assert "it does not answer" in started_toolset.state("raw")["error"]
    assert "the raw server starts" in started_toolset.state("raw")["error"]
    await eventually(lambda: started_toolset.state("raw")["state"] == "connecting")


async def test_an_older_server_that_prints_garbage_and_pages_its_list(start: Start) -> None:
    started_toolset = start(raw("garbage", "paged"))
    await started_toolset.ready("raw")
    (odd,) = started_toolset.names() - {"raw.alpha", "raw.beta"}
    assert odd.startswith("raw.odd_n_me_")
    assert await started_toolset.call(odd) == "odd/näme was called"
    await started_toolset.call("raw.beta")
    await eventually(lambda: "raw.gamma" in started_toolset.names())


async def test_a_server_that_exits_at_the_newer_protocol_is_asked_in_the_older_one(start: Start) -> None:
    started_toolset = start(raw("rude"))
    await started_toolset.ready("raw")
    assert await started_toolset.call("raw.alpha") == "alpha was called"


async def test_two_servers_may_have_tools_of_the_same_name(start: Start) -> None:
    started_toolset = start(raw(label="one"), raw(label="two"))
    await started_toolset.ready("one")
    await started_toolset.ready("two")
    assert {"one.alpha", "two.alpha"} < started_toolset.names()
    assert await started_toolset.call("two.alpha") == "alpha was called"


async def test_nothing_is_left_after_stop(start: Start, tmp_path: Path) -> None:
    started_toolset = start(local(), raw("stubborn"), raw("mute", label="mute"))
    await started_toolset.ready()
    await started_toolset.ready("raw")
    await eventually(lambda: len(children()) == 3)
    running = children()
    call = asyncio.create_task(started_toolset.call("files.wait", folder=str(tmp_path)))
    await eventually((tmp_path / "started").exists)
    await asyncio.wait_for(started_toolset.toolset.stop(), 20)
    with pytest.raises(RuntimeError, match="went away"):
        await call
    assert not any(is_alive(pid) for pid in running)
    assert started_toolset.toolset.tools() == ()
    assert {state["state"] for state in started_toolset.toolset.states()} == {"down"}


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
    gc.collect()  # warns of pipes and processes that were not closed
