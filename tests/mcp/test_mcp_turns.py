"""Tools of an MCP server inside a turn: called by the model, shown to the client, missed when the server is down."""

import sys
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.checker import check_log
from tests.support.model_stub import (
    Call,
    Calls,
    Finish,
    ModelStub,
    Text,
)
from tests.support.scripted_requests import call
from tests.support.server import (
    ROOT,
    Server,
    eventually,
    script,
    text,
)
from tests.support.stored_rows import tool_calls

pytestmark = pytest.mark.any_database

CONFIG = """
mcp_servers:
  demo:
    command: {python}
    args: ["{script}", "stdio"]
  gone:
    command: {python}
    args: ["-c", "raise SystemExit(3)"]
"""


def with_mcp(server: Server) -> Server:
    """The same server with MCP servers, one of which never comes up."""
    server.kill()
    (server.home / "config.yaml").write_text(
        CONFIG.format(python=sys.executable, script=ROOT / "tests/support/mcp_server.py")
    )
    server.start()
    eventually(lambda: offered(server), what="the MCP server")
    return server


def offered(server: Server) -> bool:
    body = ask(server, call("demo.add", a=1, b=1))
    return "no tool named" not in str(body["output"])


def ask(server: Server, *steps: dict[str, Any], **fields: Any) -> dict[str, Any]:
    with server.http() as client:
        answer = client.post("/v1/responses", json={"input": script(*steps), **fields})
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    check_log(server, body["id"])
    return body


def test_a_turn_calls_a_tool_of_an_mcp_server(make_server: Callable[..., Server]) -> None:
    server = with_mcp(make_server())
    body = ask(server, call("demo.add", a=2, b=40))
    assert [item["type"] for item in body["output"]] == ["function_call", "function_call_output", "message"]
    assert (body["output"][0]["name"], body["output"][1]["output"]) == ("demo.add", "42")
    assert tool_calls(server, body["id"]) == [("demo.add", "completed", "42")]
    failed = ask(server, call("demo.fail"))
    assert failed["status"] == "completed"
    missing = ask(server, call("gone.anything"))
    assert "no tool named" in missing["output"][1]["output"]


def test_it_is_asked_for_and_shown_by_its_label(make_server: Callable[..., Server]) -> None:
    server = with_mcp(make_server())
    tools = [{"type": "mcp", "server_label": "demo", "allowed_tools": ["add"]}]
    body = ask(server, call("demo.add", a=1, b=2), call("demo.count", to=1), tools=tools)
    added, refused, _ = body["output"]
    assert (added["type"], added["server_label"], added["name"]) == ("mcp_call", "demo", "add")
    assert (added["output"], added["status"]) == ("3", "completed")
    assert "no tool named" in str(refused["error"])
    again = ask(server, {"say": "and then"}, previous_response_id=body["id"])
    assert text(again) == "and then"
    assert "3" in server.model_calls("and then")[0]["texts"]


def test_upstreams_see_a_name_without_a_dot(make_server: Callable[..., Server], stub: ModelStub) -> None:
    server = make_server(HERMES_PROVIDER="custom", HERMES_BASE_URL=stub.url, HERMES_MODEL="m")
    server.kill()
    (server.home / "config.yaml").write_text(
        CONFIG.format(python=sys.executable, script=ROOT / "tests/support/mcp_server.py")
    )
    server.start()

    def names() -> set[str]:
        stub.play(Text("x"), Finish())
        server.openai().responses.create(model="hermes-agent", input="x")
        return {tool["function"]["name"] for tool in stub.asked[-1].body["tools"]}

    eventually(lambda: "demo-add" in names(), what="the MCP server")
    stub.play(Calls((Call("call_1", "demo-add", ('{"a": 1, "b": 4}',)),)), Finish("tool_calls"))
    stub.play(Text("five"), Finish())
    body = server.openai().responses.create(model="hermes-agent", input="x")
    assert body.output[0].type == "mcp_call"
    assert (body.output[0].server_label, body.output[0].name) == ("demo", "add")
    assert stub.asked[-1].body["messages"][-2]["tool_calls"][0]["function"]["name"] == "demo-add"
    assert stub.asked[-1].body["messages"][-1]["content"] == "5"
