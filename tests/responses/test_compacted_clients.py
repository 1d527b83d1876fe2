"""Clients that did not ask for compaction get an item of it in the output, and go on in the next turn."""

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from agents import Agent, HostedMCPTool, OpenAIResponsesModel, Runner, set_tracing_disabled
from langchain_openai import ChatOpenAI
from openai.types.responses import ResponseCompactionItem
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.models.openai import OpenAIResponsesModel as PydanticResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

from tests.support.long_conversations import SUMMARY
from tests.support.migrated_database import Database
from tests.support.server import Server

pytestmark = [
    pytest.mark.filterwarnings("default"),  # what these packages warn of is theirs
    pytest.mark.any_database,
]
SERVER_TOOLS: Any = {"type": "mcp", "server_label": "hermes", "require_approval": "never"}
WINDOW = "8000"
LONG = "word " * 4000  # fills most of the window
SOME = "word " * 1500  # does not fit beside it


@pytest.fixture(scope="module")
def server(database: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("compacted") / "home"
    server = database.server(home, Server, HERMES_CONTEXT_LENGTH=WINDOW)
    server.start()
    yield server
    server.kill()


def questions(word: str) -> list[str]:
    """The conversation is compacted in the second turn. The scripted model says what it is asked to."""
    asked = []
    for answer, padding in ((f"one {word}", LONG), (f"two {word}", SOME), (f"three {word}", "")):
        asked.append(json.dumps({"script": [{"say": answer}], "padding": padding}))
    return asked


def check(server: Server, word: str, answers: list[str]) -> None:
    assert answers == [f"one {word}", f"two {word}", f"three {word}"]
    last = server.model_calls(f"three {word}")[0]["texts"]
    assert any(shown.startswith(SUMMARY) for shown in last)
    assert not any(shown.startswith('{"script": [{"say": "one') for shown in last)


def sdk(server: Server) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key=server.key, max_retries=0)


@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
def test_openai_python_has_a_type_for_the_item(server: Server, *, is_streamed: bool) -> None:
    client = server.openai()
    word = f"openai {is_streamed}"
    history: list[Any] = []
    answers, seen = [], []
    for question in questions(word):
        history.append({"role": "user", "content": question})
        if is_streamed:
            with client.responses.stream(model="hermes-agent", input=history) as stream:
                response: Any = stream.get_final_response()
        else:
            response = client.responses.create(model="hermes-agent", input=history)
        history += [item.model_dump(exclude_none=True) for item in response.output]
        answers.append(response.output_text)
        seen.append([type(item) for item in response.output])
    check(server, word, answers)
    assert [ResponseCompactionItem in kinds for kinds in seen] == [False, True, False]


@pytest.mark.parametrize("is_chained", [False, True], ids=["history", "chain"])
def test_langchain_goes_on(server: Server, *, is_chained: bool) -> None:
    model = ChatOpenAI(
        model="hermes-agent",
        base_url=f"{server.url}/v1",
        api_key=server.key,  # type: ignore[arg-type]
        use_responses_api=True,
        use_previous_response_id=is_chained,
        max_retries=0,
    )
    word = f"langchain {is_chained}"
    messages: list[Any] = []
    answers = []
    for question in questions(word):
        messages.append(("user", question))
        whole: Any = None
        for chunk in model.stream(messages):
            whole = chunk if whole is None else whole + chunk
        messages.append(whole)
        answers.append(str(whole.text))
    check(server, word, answers)


async def test_pydantic_ai_goes_on(server: Server) -> None:
    async with sdk(server) as client:
        agent = PydanticAgent(PydanticResponsesModel("hermes-agent", provider=OpenAIProvider(openai_client=client)))
        history: Any = []
        answers = []
        for question in questions("pydantic"):
            async with agent.run_stream(question, message_history=history) as streamed:
                answers.append(await streamed.get_output())
                history = streamed.all_messages()
    check(server, "pydantic", answers)


async def test_openai_agents_goes_on(server: Server) -> None:
    set_tracing_disabled(True)
    async with sdk(server) as client:
        model = OpenAIResponsesModel(model="hermes-agent", openai_client=client)
        # Without an entry it sends `tools: []`, and the conversation has room for its second turn.
        agent = Agent(name="a", model=model, tools=[HostedMCPTool(tool_config=SERVER_TOOLS)])
        history: list[Any] = []
        answers = []
        for question in questions("agents"):
            result = Runner.run_streamed(agent, [*history, {"role": "user", "content": question}])
            async for _ in result.stream_events():
                pass
            history = result.to_input_list()
            answers.append(result.final_output)
    check(server, "agents", answers)
