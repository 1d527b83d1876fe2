"""Text and reasoning in a delta or a message, in the forms of different servers."""

from typing import Any

from gateway_app.agent.events import ReasoningDelta

_DETAIL_TEXT = "reasoning.text"
_DETAIL_SUMMARY = "reasoning.summary"


def text_of(given: Any) -> str:
    """Some servers send a list of parts where others send the text."""
    if isinstance(given, str):
        return given
    if not isinstance(given, list):
        return ""
    texts = []
    for part in given:
        if isinstance(part, dict) and isinstance(part.get("text"), str):
            texts.append(part["text"])
    return "".join(texts)


def thinking_in(content: list[Any]) -> list[str]:
    """The reasoning among the parts of a content, as Mistral sends it."""
    found: list[str] = []
    for part in content:
        if isinstance(part, dict) and part.get("type") == "thinking":
            text = text_of(part.get("thinking"))
            if text:
                found.append(text)
    return found


def read_reasoning(delta: dict[str, Any]) -> ReasoningDelta | None:
    details = delta.get("reasoning_details")
    text = text_of(delta.get("reasoning_content") or delta.get("reasoning"))
    if isinstance(details, list) and details:
        return _read_details(details, text)
    if text:
        return ReasoningDelta(text)
    return None


def _read_details(details: list[Any], text: str) -> ReasoningDelta | None:
    """OpenRouter's details name the kind of the text, which is often sent beside them too."""
    texts: list[str] = []
    summaries: list[str] = []
    for detail in details:
        if not isinstance(detail, dict):
            continue
        kind = detail.get("type")
        if kind == _DETAIL_TEXT:
            texts.append(text_of(detail.get("text")))
        elif kind == _DETAIL_SUMMARY:
            summaries.append(text_of(detail.get("summary")))
    is_summary = not texts and bool(summaries)
    text = text or "".join(texts or summaries)
    if not text:
        return None
    return ReasoningDelta(text, is_summary)
