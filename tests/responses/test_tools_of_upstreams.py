"""Tools and items that some upstreams have: they get what the client sent, and others get what they understand."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.support.checker import check_log
from tests.support.migrated_database import Database
from tests.support.model_stub import Call, Calls, Finish, ModelStub, Text
from tests.support.server import Server

pytestmark = pytest.mark.any_database

SEARCH = {"type": "file_search", "vector_store_ids": ["vs_1"]}
ELSEWHERE = {"type": "mcp", "server_label": "elsewhere", "server_url": "https://mcp.example"}
OWN = {"type": "mcp", "server_label": "hermes"}
LOOK = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}}
SUM = Calls((Call("call_1", "calculate", ('{"expression": "1+1"}',)),))


@dataclass(frozen=True)
class Front:
    server: Server
    stub: ModelStub
    has_responses: bool

    def create(self, **body: Any) -> httpx.Response:
        with self.server.http() as client:
            answer = client.post("/v1/responses", json={"input": "x"} | body)
        assert answer.status_code == 200, answer.text
        return answer

    def sent(self) -> dict[str, Any]:
        found: dict[str, Any] = self.stub.asked[-1].body
        return found


@pytest.fixture(scope="module", params=["chat_completions", "codex_responses"])
def front(
    request: pytest.FixtureRequest, database: Database, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Front]:
    mode = str(request.param)
    with ModelStub() as stub:
        env = {"HERMES_PROVIDER": "custom", "HERMES_MODEL": "m", "HERMES_BASE_URL": stub.url}
        home = tmp_path_factory.mktemp("upstreams") / "h"
        server = database.server(home, Server, **env, HERMES_API_MODE=mode).start()
        yield Front(server, stub, mode == "codex_responses")
        server.kill()


# -- choices ----------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("choice", "tool"),
    [
        ({"type": "file_search"}, SEARCH),
        ({"type": "mcp", "server_label": "elsewhere", "name": "a.b"}, ELSEWHERE),
        ({"type": "shell"}, {"type": "shell"}),
    ],
)
def test_a_choice_of_an_upstreams_tool_reaches_only_upstreams_that_may_have_it(
    front: Front, choice: dict[str, Any], tool: dict[str, Any]
) -> None:
    front.stub.play(Text("ok"), Finish())
    answer = front.create(tools=[tool, LOOK], tool_choice=choice)
    assert answer.json()["tool_choice"] == choice
    named = f"tools[0] ({tool['type']}), tool_choice ({choice['type']})"
    assert answer.headers["x-hermes-ignored"] == named
    expected = choice if front.has_responses else "auto"
    assert front.sent()["tool_choice"] == expected


@pytest.mark.parametrize("choice", [OWN, OWN | {"name": "calculate"}])
def test_a_choice_of_the_servers_tools_forces_one_of_them_once(front: Front, choice: dict[str, Any]) -> None:
    first = len(front.stub.asked)
    front.stub.play(SUM, Finish("tool_calls"))
    front.stub.play(Text("two"), Finish())
    answer = front.create(tools=[OWN, LOOK], tool_choice=choice)
    forced, free = (asked.body for asked in front.stub.asked[first:])
    assert "x-hermes-ignored" not in answer.headers
    assert free["tool_choice"] == "auto"
    if front.has_responses:
        assert forced["tool_choice"]["mode"] == "required"
        offered = [tool["name"] for tool in forced["tool_choice"]["tools"]]
    else:
        assert forced["tool_choice"] == "required"
        offered = [tool["function"]["name"] for tool in forced["tools"]]
    assert "calculate" in offered
    assert "look" not in offered
    assert ("name" in choice) == (offered == ["calculate"])


REFUSED: list[tuple[dict[str, Any], list[dict[str, Any]] | None, str]] = [
    ({"type": "file_search"}, None, "tool_choice.type"),
    ({"type": "file_search"}, [LOOK], "tool_choice.type"),
    ({"type": "mcp", "server_label": "elsewhere"}, [OWN], "tool_choice.server_label"),
    ({"type": "mcp"}, [OWN], "tool_choice.server_label"),
    (OWN | {"name": "fly"}, None, "tool_choice"),
    (OWN, [LOOK], "tool_choice"),
    (OWN | {"name": 5}, None, "tool_choice.name"),
]


@pytest.mark.parametrize(("choice", "tools", "param"), REFUSED, ids=range(len(REFUSED)))
def test_a_choice_of_a_tool_that_is_not_offered_is_refused_by_name(
    server: Server, choice: dict[str, Any], tools: list[dict[str, Any]] | None, param: str
) -> None:
    with server.http() as client:
        answer = client.post("/v1/responses", json={"input": "x", "tool_choice": choice, "tools": tools})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)


def test_the_builtin_model_calls_the_servers_tool_that_is_forced(server: Server) -> None:
    body: dict[str, Any] = {"input": "hello", "tool_choice": OWN | {"name": "list_files"}}
    with server.http() as client:
        output = client.post("/v1/responses", json=body).json()["output"]
    assert [item["name"] for item in output if item["type"] == "function_call"] == ["list_files"]


# -- items ------------------------------------------------------------------------------
def test_tools_that_an_item_adds_are_the_clients_from_there_on(front: Front) -> None:
    front.stub.play(Calls((Call("call_1", "look", ("{}",)),)), Finish("tool_calls"))
    items = [{"type": "additional_tools", "role": "developer", "tools": [LOOK]}, {"role": "user", "content": "x"}]
    first = front.create(input=items, tools=[], tool_choice={"type": "function", "name": "look"}).json()
    assert [(item["type"], item["status"]) for item in first["output"]] == [("function_call", "completed")]
    front.stub.play(Text("seen"), Finish())
    output = {"type": "function_call_output", "call_id": "call_1", "output": "a cat"}
    front.create(input=[output], tools=[], previous_response_id=first["id"])
    [tool] = front.sent()["tools"]
    assert (tool if front.has_responses else tool["function"])["name"] == "look"
    assert "additional_tools" not in str(front.sent())
    check_log(front.server, first["id"])


def test_added_tools_stand_beside_those_of_the_server(front: Front) -> None:
    front.stub.play(Text("ok"), Finish())
    items = [{"type": "additional_tools", "tools": [LOOK, SEARCH]}, {"role": "user", "content": "x"}]
    answer = front.create(input=items)
    assert answer.headers["x-hermes-ignored"] == "input[0].tools[1] (file_search)"
    tools = front.sent()["tools"]
    names = [tool.get("name") or tool.get("function", {}).get("name") for tool in tools]
    assert {"look", "calculate"} <= set(names)
    assert (SEARCH in tools) == front.has_responses


def test_items_of_the_responses_api_are_passed_on_or_named(front: Front) -> None:
    program = {"type": "program", "call_id": "p_1", "code": "1", "fingerprint": "f"}
    result = {"type": "program_output", "call_id": "p_1", "result": "1", "status": "incomplete"}
    update = {"type": "configuration_update", "reasoning": {"effort": "max"}}
    caller = {"type": "program", "caller_id": "p_1"}
    call = {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}", "caller": caller}
    output = {"type": "function_call_output", "call_id": "c", "output": "r", "caller": caller, "namespace": "n"}
    front.stub.play(Text("ok"), Finish())
    answer = front.create(input=[program, result, update, call, output, {"role": "user", "content": "x"}])
    kept = "input[3].caller, input[4].caller, input[4].namespace"
    if front.has_responses:
        assert answer.headers["x-hermes-ignored"] == kept
        assert front.sent()["input"][:5] == [program, result, update, call, output]
    else:
        unseen = "input[0] (program), input[1] (program_output), input[2] (configuration_update)"
        assert answer.headers["x-hermes-ignored"] == f"{kept}, {unseen}"


def test_a_compaction_trigger_is_for_its_own_request_only(front: Front) -> None:
    trigger = {"type": "compaction_trigger"}
    front.stub.play(Text("ok"), Finish())
    first = front.create(input=[{"role": "user", "content": "x"}, trigger]).json()
    assert ("compaction_trigger" in str(front.sent())) == front.has_responses
    front.stub.play(Text("ok"), Finish())
    front.create(previous_response_id=first["id"])
    assert "compaction_trigger" not in str(front.sent())


def test_marks_of_the_prompt_cache_reach_upstreams_that_know_them(front: Front) -> None:
    mark = {"mode": "explicit", "ttl": "30m"}
    part = {"type": "input_text", "text": "x", "prompt_cache_breakpoint": mark}
    front.stub.play(Text("ok"), Finish())
    answer = front.create(input=[{"role": "user", "content": [part]}])
    assert answer.headers["x-hermes-ignored"] == "input[0].content[0].prompt_cache_breakpoint"
    if front.has_responses:
        assert front.sent()["input"][0]["content"] == [part]
    else:
        assert front.sent()["messages"][-1]["content"] == "x"


def test_an_added_tool_is_checked_as_any_other(server: Server) -> None:
    items = [{"type": "additional_tools", "tools": [{"type": "function", "name": "a b"}]}]
    with server.http() as client:
        answer = client.post("/v1/responses", json={"input": items})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "input[0].tools[0].name")
