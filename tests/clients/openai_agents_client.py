"""Turns with the OpenAI Agents SDK, which has the server's tools only if an ``mcp`` entry asks for them."""

from typing import Any

import openai
from agents import (
    Agent,
    HostedMCPTool,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    set_tracing_disabled,
)

from tests.clients.driving import MODEL, Case, Texts, drive_async

SERVER_TOOLS: Any = {"type": "mcp", "server_label": "hermes", "require_approval": "never"}
MODELS: dict[str, Any] = {"chat": OpenAIChatCompletionsModel, "responses": OpenAIResponsesModel}


async def talk(case: Case) -> Texts:
    set_tracing_disabled(True)
    async with openai.AsyncOpenAI(base_url=case.base_url, api_key=case.key, max_retries=0) as client:
        model = MODELS[case.api](model=MODEL, openai_client=client)
        tools: Any = [HostedMCPTool(tool_config=SERVER_TOOLS)] if case.api == "responses" else []
        agent = Agent(name="a", model=model, tools=tools)
        history: list[Any] = []
        previous_id = None
        texts = []
        for question in case.questions:
            asked = {"role": "user", "content": question}
            sent: Any = [asked] if case.is_chained else [*history, asked]
            if case.is_streamed:
                result: Any = Runner.run_streamed(agent, sent, previous_response_id=previous_id)
                async for _ in result.stream_events():
                    pass
            else:
                result = await Runner.run(agent, sent, previous_response_id=previous_id)
            history = result.to_input_list()
            texts.append(result.final_output)
            if case.is_chained:
                previous_id = result.last_response_id
        return texts


drive_async("openai-agents", talk)
