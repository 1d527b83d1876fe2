# mypy: ignore-errors
"""Turns with Haystack, in an environment of its own."""

from haystack.components.generators.chat import OpenAIChatGenerator, OpenAIResponsesChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.utils import Secret

from tests.clients.driving import MODEL, Case, Texts, drive

GENERATORS = {"chat": OpenAIChatGenerator, "responses": OpenAIResponsesChatGenerator}


def talk(case: Case) -> Texts:
    secret = Secret.from_token(case.key)
    generator = GENERATORS[case.api](api_key=secret, model=MODEL, api_base_url=case.base_url, max_retries=0)
    streamed = []
    callback = streamed.append if case.is_streamed else None
    messages, texts, options = [], [], {}
    for question in case.questions:
        asked = ChatMessage.from_user(question)
        messages.append(asked)
        sent = [asked] if case.is_chained else messages
        [reply] = generator.run(sent, streaming_callback=callback, generation_kwargs=options)["replies"]
        assert not reply.tool_calls, reply.tool_calls
        messages.append(reply)
        texts.append(reply.text)
        if case.is_chained:
            options = {"previous_response_id": reply.meta["id"]}
    assert bool(streamed) == case.is_streamed
    return texts


drive("haystack-ai", talk)
