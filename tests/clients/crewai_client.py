# mypy: ignore-errors
"""Turns with CrewAI, in an environment of its own."""

from crewai import LLM

from tests.clients.driving import MODEL, Case, Texts, drive

APIS = {"chat": "completions", "responses": "responses"}


def talk(case: Case) -> Texts:
    llm = LLM(
        model=f"openai/{MODEL}",
        base_url=case.base_url,
        api_key=case.key,
        api=APIS[case.api],
        stream=case.is_streamed,
        auto_chain=case.is_chained,
        max_retries=0,
    )
    messages, texts = [], []
    for question in case.questions:
        asked = {"role": "user", "content": question}
        messages.append(asked)
        text = llm.call([asked] if case.is_chained else messages)
        messages.append({"role": "assistant", "content": text})
        texts.append(text)
    return texts


drive("crewai", talk)
