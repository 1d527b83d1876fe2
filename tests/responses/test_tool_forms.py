"""How calls of the server's tools appear: no client takes them for its own, and two turns work."""

from typing import Any

import openai
import pytest
from agents import Agent, HostedMCPTool, OpenAIResponsesModel, Runner, set_tracing_disabled
from agents.models.interface import Model
from langchain_openai import ChatOpenAI
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.models.openai import OpenAIResponsesModel as PydanticResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

from tests.support.people import create_key
from tests.support.scripted_requests import call, effects
from tests.support.server import Server, script

pytestmark = [
    pytest.mark.filterwarnings("default"),  # what these packages warn of is theirs
    pytest.mark.any_database,
]
# It sends `tools: []` with every request, so that an agent without tools has none of the server's either.
SERVER_TOOLS: Any = {"type": "mcp", "server_label": "hermes", "require_approval": "never"}
FORMS = ("mcp_call", "function_call")


def kinds(body: dict[str, Any]) -> list[str]:
    return [item["type"] for item in body["output"]]


def chat(server: Server, **headers: str) -> ChatOpenAI:
    return ChatOpenAI(
        model="hermes-agent",
        base_url=f"{server.url}/v1",
        api_key=server.key,  # type: ignore[arg-type]
        use_responses_api=True,
        max_retries=0,
        default_headers=headers,
    )


def sdk(server: Server, **headers: str) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key=server.key, max_retries=0, default_headers=headers)


def received_texts(server: Server, last: str) -> list[str]:
    """The texts and outputs that the model was sent with this question."""
    found: list[str] = server.model_calls(last)[0]["texts"]
    return found


def test_openai_python_gets_mcp_items_and_sends_them_back(server: Server) -> None:
    client = server.openai()
    question: Any = {"role": "user", "content": script(call("effect", text="openai tool"))}
    first = client.responses.create(input=[question])
    assert [item.type for item in first.output] == ["mcp_call", "message"]
    history = [question, *[item.model_dump() for item in first.output]]
    ending: Any = {"role": "user", "content": script({"say": "openai next"})}
    second = client.responses.create(input=[*history, ending])
    assert second.output_text == "openai next"
    assert "openai tool" in received_texts(server, '"openai next"')
    assert effects(server, "openai tool") == 1


async def test_openai_agents_takes_no_call_of_the_server_for_its_own(server: Server) -> None:
    set_tracing_disabled(True)
    async with sdk(server) as client:
        model: Model = OpenAIResponsesModel(model="hermes-agent", openai_client=client)
        agent = Agent(name="a", model=model, tools=[HostedMCPTool(tool_config=SERVER_TOOLS)])
        first = await Runner.run(agent, script(call("effect", text="agents tool")))
        assert first.final_output == "The result is agents tool."
        history = [*first.to_input_list(), {"role": "user", "content": script({"say": "agents next"})}]
        second = await Runner.run(agent, history)  # type: ignore[arg-type]
    assert second.final_output == "agents next"
    assert "agents tool" in received_texts(server, '"agents next"')


@pytest.mark.parametrize("form", ["auto", "function_call"])
def test_langchain_goes_on_after_a_call_of_the_server(server: Server, form: str) -> None:
    """It sends a function_call back without its output, which it dropped."""
    model = chat(server, **{"X-Hermes-Tool-Items": form})
    question = ("user", script(call("effect", text=f"langchain {form}")))
    first = model.invoke([question])
    assert f"The result is langchain {form}." in str(first.text)
    last = f"langchain next {form}"
    second = model.invoke([question, first, ("user", script({"say": last}))])
    assert str(second.text) == last
    assert f"langchain {form}" in received_texts(server, f'"{last}"')


async def test_pydantic_ai_does_not_answer_calls_of_the_server(server: Server) -> None:
    async with sdk(server) as client:
        model = PydanticResponsesModel("hermes-agent", provider=OpenAIProvider(openai_client=client))
        agent = PydanticAgent(model)
        first = await agent.run(script(call("effect", text="pydantic tool")))
        assert first.output == "The result is pydantic tool."
        second = await agent.run(script({"say": "pydantic next"}), message_history=first.all_messages())
    assert second.output == "pydantic next"
    texts = received_texts(server, '"pydantic next"')
    assert "pydantic tool" in texts
    assert not any("Unknown tool" in sent for sent in texts)


@pytest.mark.parametrize("form", FORMS)
def test_a_call_that_is_sent_back_without_its_output_gets_it(server: Server, form: str) -> None:
    word = f"bare {form}"
    question = {"role": "user", "content": script(call("effect", text=word))}
    with server.http() as client:
        headers = {"X-Hermes-Tool-Items": form}
        first = client.post("/v1/responses", json={"input": [question]}, headers=headers).json()
        bare = [item for item in first["output"] if item["type"] != "function_call_output"]
        for item in bare:
            item.pop("output", None)
        ending = {"role": "user", "content": script({"say": f"after {word}"})}
        second = client.post("/v1/responses", json={"input": [question, *bare, ending]})
        assert second.status_code == 200, second.text
        unknown = {"type": "function_call", "call_id": "call_x", "name": "effect", "arguments": "{}"}
        refused = client.post("/v1/responses", json={"input": [question, unknown]})
    assert word in received_texts(server, f'"after {word}"')
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "input[1].call_id")


def test_a_call_that_was_altered_gets_no_output(server: Server) -> None:
    question = {"role": "user", "content": script(call("effect", text="unaltered"))}
    ending = {"role": "user", "content": script({"say": "altered next"})}
    with server.http() as client:
        first = client.post(
            "/v1/responses", json={"input": [question]}, headers={"X-Hermes-Tool-Items": "mcp_call"}
        ).json()
        bare = first["output"][0] | {"output": None, "arguments": '{"text":"changed"}'}
        second = client.post("/v1/responses", json={"input": [question, bare, ending]})
    assert second.status_code == 200, second.text
    assert "unaltered" not in received_texts(server, '"altered next"')


def test_the_output_of_another_owners_call_is_not_filled_in(server: Server) -> None:
    with server.http() as client, server.http(create_key(server, "curious")) as stranger:
        question = {"role": "user", "content": script(call("effect", text="private result"))}
        first = client.post("/v1/responses", json={"input": [question]}).json()
        copied = first["output"][0]
        refused = stranger.post("/v1/responses", json={"input": [question, copied]})
        item = {"type": "mcp_call", "server_label": "hermes", "name": "effect", "arguments": "{}", "id": copied["id"]}
        stranger.post("/v1/responses", json={"input": [item, {"role": "user", "content": script({"say": "mine?"})}]})
    assert refused.status_code == 400
    assert "private result" not in received_texts(server, '"mine?"')


def test_header_profile_and_setting_choose_the_form(server: Server) -> None:
    plain = {"input": script(call("effect", text="form"))}
    sdk_headers = {"X-Stainless-Lang": "js"}
    with server.http() as client:
        for headers, expected in (
            ({}, "function_call"),
            (sdk_headers, "mcp_call"),
            (sdk_headers | {"X-Hermes-Tool-Items": "function_call"}, "function_call"),
            ({"X-Hermes-Tool-Items": "mcp_call"}, "mcp_call"),
            (sdk_headers | {"X-Hermes-Tool-Items": "auto"}, "mcp_call"),
        ):
            body = client.post("/v1/responses", json=plain, headers=headers).json()
            assert kinds(body)[0] == expected, headers
