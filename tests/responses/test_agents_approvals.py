"""Approvals with the OpenAI Agents SDK: by a callback or by the program, over a chain or with the history."""

from typing import Any

import openai
import pytest
from agents import Agent, HostedMCPTool, OpenAIResponsesModel, Runner, set_tracing_disabled

from tests.support.scripted_requests import call, effects
from tests.support.server import Server, script

pytestmark = [
    pytest.mark.filterwarnings("default"),  # what the package warns of is its own
    pytest.mark.any_database,
]
ENTRY: Any = {"type": "mcp", "server_label": "hermes", "require_approval": "always"}
REASON = "Not on a Friday."


def sdk(server: Server) -> openai.AsyncOpenAI:
    set_tracing_disabled(True)
    return openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key=server.key, max_retries=0)


def agent(client: openai.AsyncOpenAI, **options: Any) -> Agent[Any]:
    model = OpenAIResponsesModel(model="hermes-agent", openai_client=client)
    return Agent(name="a", model=model, tools=[HostedMCPTool(tool_config=ENTRY, **options)])


async def run(asking: Agent[Any], given: Any, *, is_streamed: bool, **options: Any) -> Any:
    if not is_streamed:
        return await Runner.run(asking, given, **options)
    result = Runner.run_streamed(asking, given, **options)
    async for _ in result.stream_events():
        pass
    return result


@pytest.mark.parametrize("approve", [True, False], ids=["approved", "rejected"])
@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
async def test_a_callback_decides(server: Server, *, approve: bool, is_streamed: bool) -> None:
    word = f"callback {approve} {is_streamed}"
    asked: list[str] = []

    def decide(request: Any) -> Any:
        asked.append(request.data.name)
        return {"approve": approve} if approve else {"approve": False, "reason": REASON}

    async with sdk(server) as client:
        asking = agent(client, on_approval_request=decide)
        first = await run(asking, script(call("effect", text=word)), is_streamed=is_streamed)
        following = {"role": "user", "content": script({"say": f"after {word}"})}
        second = await run(asking, [*first.to_input_list(), following], is_streamed=is_streamed)
    check(server, word, first.final_output, approve=approve)
    assert asked == ["effect"]
    assert second.final_output == f"after {word}"


@pytest.mark.parametrize("approve", [True, False], ids=["approved", "rejected"])
@pytest.mark.parametrize("is_chained", [False, True], ids=["history", "chain"])
async def test_the_program_decides_between_two_runs(server: Server, *, approve: bool, is_chained: bool) -> None:
    word = f"program {approve} {is_chained}"
    chain: dict[str, Any] = {"auto_previous_response_id": True} if is_chained else {}
    async with sdk(server) as client:
        asking = agent(client)
        stopped = await run(asking, script(call("effect", text=word)), is_streamed=False, **chain)
        [request] = stopped.interruptions
        assert (request.name, effects(server, word)) == ("effect", 0)
        state = stopped.to_state()
        if approve:
            state.approve(request)
        else:
            state.reject(request, rejection_message=REASON)
        first = await run(asking, state, is_streamed=False, **chain)
        check(server, word, first.final_output, approve=approve)
        following: Any = [{"role": "user", "content": script({"say": f"after {word}"})}]
        if is_chained:
            options = {"previous_response_id": first.last_response_id}
        else:
            following = [*first.to_input_list(), *following]
            options = {}
        second = await run(asking, following, is_streamed=False, **options)
    assert second.final_output == f"after {word}"
    assert effects(server, word) == int(approve)


def check(server: Server, word: str, answer: str, *, approve: bool) -> None:
    assert effects(server, word) == int(approve)
    if approve:
        assert answer == f"The result is {word}."
    else:
        assert "Denied" in answer
        assert REASON in answer
