"""Which tools a request has: those of the profile, those of the client, or both."""

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
import yaml

from tests.support.migrated_database import Database
from tests.support.scripted_requests import call, effects
from tests.support.server import Server, script

pytestmark = pytest.mark.any_database

MERGE = {"X-Hermes-Client-Tools": "merge"}
PROFILES: dict[str, Any] = {
    "none": {"toolset": []},
    "one": {"toolset": ["effect"]},
    "all": {"toolset": None},
    "merging": {"client_tools": "merge", "toolset": ["effect", "calculate"]},
    "mcp": {"tool_items": "mcp_call"},
    "waiting": {"approval_wait": True},
}


def function(name: str) -> dict[str, Any]:
    return {"type": "function", "name": name, "parameters": {"type": "object", "properties": {}}}


@pytest.fixture(scope="module")
def profiled(database: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = database.server(tmp_path_factory.mktemp("toolsets") / "home", Server)
    (server.home / "config.yaml").write_text(yaml.safe_dump({"profiles": PROFILES}))
    server.start()
    yield server
    server.kill()


def offered(client: httpx.Client, model: str, headers: dict[str, str] | None = None, **fields: Any) -> set[str]:
    """The tools that the model may call: it is shown them when it calls one that is not there."""
    body = {"model": model, "input": script(call("missing_tool")), **fields}
    answer = client.post("/v1/responses", json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    output = next(item for item in answer.json()["output"] if item["type"] == "function_call_output")["output"]
    listed = output.removesuffix(".").rpartition(": ")[2]
    return set(listed.split(", "))


def test_no_list_means_all_tools_and_an_empty_one_none(profiled: Server) -> None:
    with profiled.http() as client:
        assert offered(client, "none") == {"none"}
        assert offered(client, "one") == {"effect"}
        assert {"effect", "calculate", "read_file"} <= offered(client, "all")


def test_tools_of_the_client_replace_those_of_the_profile_or_are_merged(profiled: Server) -> None:
    own = [function("weather")]
    with profiled.http() as client:
        assert offered(client, "one", tools=own) == {"weather"}
        assert offered(client, "one", MERGE, tools=own) == {"weather", "effect"}
        assert offered(client, "merging", tools=own) == {"weather", "effect", "calculate"}
        assert offered(client, "merging", {"X-Hermes-Client-Tools": "replace"}, tools=own) == {"weather"}
        assert offered(client, "merging") == {"effect", "calculate"}
        wrong = client.post("/v1/responses", json={"input": "x"}, headers={"X-Hermes-Client-Tools": "both"})
    assert (wrong.status_code, wrong.json()["error"]["param"]) == (400, "X-Hermes-Client-Tools")


def test_merged_tools_are_counted(profiled: Server) -> None:
    def counted(client: httpx.Client, model: str, headers: dict[str, str] | None = None) -> int:
        body = {"model": model, "input": "x", "tools": [function("weather")]}
        found = client.post("/v1/responses/input_tokens", json=body, headers=headers)
        assert found.status_code == 200, found.text
        tokens: int = found.json()["input_tokens"]
        return tokens

    with profiled.http() as client:
        assert counted(client, "merging") > counted(client, "none")
        assert counted(client, "one", MERGE) > counted(client, "one")


def test_no_tools_and_a_forced_call_stay_as_they_are(profiled: Server) -> None:
    own = [function("weather")]
    with profiled.http() as client:
        assert offered(client, "merging", tools=[]) == {"none"}
        assert offered(client, "merging", tools=own, tool_choice="auto") > {"weather"}
        for choice in ("required", {"type": "function", "name": "weather"}):
            assert offered(client, "merging", tools=own, tool_choice=choice) == {"weather"}, choice


def test_a_name_that_both_have_is_the_clients(profiled: Server) -> None:
    steps = script(call("effect", text="whose"))
    with profiled.http() as client:
        body = {"model": "merging", "input": steps, "tools": [function("effect")]}
        answer = client.post("/v1/responses", json=body).json()
        assert [item["type"] for item in answer["output"]] == ["function_call"]
        messages = [{"role": "user", "content": script(call("effect", text="merged chat"))}]
        tools = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
        chat = {"model": "merging", "messages": messages, "tools": tools}
        completion = client.post("/v1/chat/completions", json=chat).json()
    assert effects(profiled, "whose") == 0
    assert completion["choices"][0]["message"]["content"] == "The result is merged chat."


def test_a_profile_chooses_the_form_of_calls_and_a_header_another(profiled: Server) -> None:
    body = {"model": "mcp", "input": script(call("effect", text="x"))}
    with profiled.http() as client:
        for headers, kind in (({}, "mcp_call"), ({"X-Hermes-Tool-Items": "auto"}, "function_call")):
            answer = client.post("/v1/responses", json=body, headers=headers).json()
            assert answer["output"][0]["type"] == kind


def test_the_setting_chooses_the_form_of_calls(make_server: Callable[..., Server]) -> None:
    server = make_server(HERMES_TOOL_ITEMS="mcp_call")
    with server.http() as client:
        answer = client.post("/v1/responses", json={"input": script(call("effect", text="x"))}).json()
    assert answer["output"][0]["type"] == "mcp_call"


def test_a_profile_lets_chats_wait_for_an_approval(profiled: Server) -> None:
    messages = [{"role": "user", "content": script(call("guarded", text="waited"))}]
    body = {"model": "waiting", "messages": messages, "stream": True}
    with profiled.http() as client, client.stream("POST", "/v1/chat/completions", json=body) as answer:
        lines = answer.iter_lines()
        asked = next(line for line in lines if line.startswith("data: {") and "approval" in line)
        run_id = asked.partition('"id":"chatcmpl-')[2].partition('"')[0]
        with profiled.http() as other:
            other.post(f"/v1/runs/run_{run_id}/approval", json={"choice": "once"}).raise_for_status()
        rest = "".join(lines)
    assert "waited" in rest
    assert effects(profiled, "waited") == 1
