"""Client frameworks as people use them, against a real server."""

from typing import Any

import openai
import pytest
from agents import Agent, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.models.openai import OpenAIResponsesModel as PydanticResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

from tests.support.server import Server

pytestmark = [
    pytest.mark.filterwarnings("default"),  # what these packages warn of is theirs
    pytest.mark.any_database,
]


@tool
def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"sunny in {city}"


@pytest.fixture
def chat(server: Server) -> ChatOpenAI:
    return ChatOpenAI(
        model="hermes-agent",
        base_url=f"{server.url}/v1",
        api_key=server.key,  # type: ignore[arg-type]
        use_responses_api=True,
        use_previous_response_id=True,
        max_retries=0,
    )


def test_langchain_invokes_streams_and_chains(chat: ChatOpenAI) -> None:
    first = chat.invoke("langchain says hello")
    assert "langchain says hello" in str(first.text)
    assert first.response_metadata["id"].startswith("resp_")
    streamed = "".join(str(chunk.text) for chunk in chat.stream("langchain says hello"))
    assert streamed == str(first.text)
    second = chat.invoke([("user", "langchain says hello"), first, ("user", "and again")])
    assert 'first: "langchain says hello"' in str(second.text)


def test_langchain_runs_its_own_tools(chat: ChatOpenAI) -> None:
    bound = chat.bind_tools([get_weather])
    called: Any = bound.invoke("What is the weather in Paris?")
    [call] = called.tool_calls
    assert call["name"] == "get_weather"
    answer = get_weather.invoke(call)
    final = bound.invoke([("user", "What is the weather in Paris?"), called, answer])
    assert "sunny in sample" in str(final.text)


async def test_openai_agents_runs_a_tool_and_streams(server: Server) -> None:
    set_tracing_disabled(True)

    @function_tool
    def weather_report(city: str) -> str:
        """The weather in a city."""
        return f"cloudy in {city}"

    async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key=server.key, max_retries=0) as client:
        model = OpenAIResponsesModel(model="hermes-agent", openai_client=client)
        agent = Agent(name="a", instructions="Be short.", model=model, tools=[weather_report])
        result = await Runner.run(agent, "What is the weather?")
        assert result.final_output == "The result is cloudy in sample."
        streamed = Runner.run_streamed(agent, "What is the weather?")
        kinds = [event.type async for event in streamed.stream_events()]
        assert streamed.final_output == result.final_output
        assert "raw_response_event" in kinds


class Verdict(BaseModel):
    city: str
    is_warm: bool


async def test_pydantic_ai_gets_typed_output_by_a_forced_tool(server: Server) -> None:
    async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key=server.key, max_retries=0) as client:
        model = PydanticResponsesModel("hermes-agent", provider=OpenAIProvider(openai_client=client))
        typed = await PydanticAgent(model, output_type=Verdict).run("Is Paris warm?")
        assert typed.output == Verdict(city="sample", is_warm=True)
        plain = await PydanticAgent(model).run("pydantic says hello")
        assert "pydantic says hello" in plain.output
