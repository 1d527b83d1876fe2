"""Turns with Pydantic AI."""

from typing import Any

import openai
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel, OpenAIResponsesModelSettings
from pydantic_ai.providers.openai import OpenAIProvider

from tests.clients.driving import MODEL, Case, Texts, drive_async

MODELS: dict[str, Any] = {"chat": OpenAIChatModel, "responses": OpenAIResponsesModel}


async def talk(case: Case) -> Texts:
    async with openai.AsyncOpenAI(base_url=case.base_url, api_key=case.key, max_retries=0) as client:
        model = MODELS[case.api](MODEL, provider=OpenAIProvider(openai_client=client))
        settings = OpenAIResponsesModelSettings()
        if case.is_chained:
            settings["openai_previous_response_id"] = "auto"
        agent = Agent(model, model_settings=settings)
        history: list[ModelMessage] = []
        texts = []
        for question in case.questions:
            if case.is_streamed:
                async with agent.run_stream(question, message_history=history) as streamed:
                    texts.append(await streamed.get_output())
                    history = streamed.all_messages()
            else:
                result = await agent.run(question, message_history=history)
                texts.append(result.output)
                history = result.all_messages()
        return texts


drive_async("pydantic-ai-slim", talk)
