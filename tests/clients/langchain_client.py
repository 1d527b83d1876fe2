"""Turns with LangChain."""

from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_openai import ChatOpenAI

from tests.clients.driving import MODEL, Case, Texts, drive


def talk(case: Case) -> Texts:
    model = ChatOpenAI(
        model=MODEL,
        base_url=case.base_url,
        api_key=case.key,  # type: ignore[arg-type]
        use_responses_api=case.api == "responses",
        use_previous_response_id=case.is_chained,
        max_retries=0,
    )
    messages: list[BaseMessage] = []
    texts = []
    for question in case.questions:
        messages.append(HumanMessage(question))
        answer = _streamed(model, messages) if case.is_streamed else model.invoke(messages)
        assert isinstance(answer, AIMessage)
        assert not answer.tool_calls, answer.tool_calls
        messages.append(answer)
        texts.append(str(answer.text))
    return texts


def _streamed(model: ChatOpenAI, messages: list[BaseMessage]) -> Any:
    whole: Any = None
    for chunk in model.stream(messages):
        whole = chunk if whole is None else whole + chunk
    return whole


drive("langchain-openai", talk)
