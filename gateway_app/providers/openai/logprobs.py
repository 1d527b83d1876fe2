"""How sure a model was of its words, in one shape for both protocols."""

from typing import Any

from gateway_app.agent.events import Item


def read_logprobs(raw: Any) -> tuple[Item, ...]:
    """One entry for each token; what is no such entry is left out."""
    entries = [entry for entry in raw if _is_entry(entry)] if isinstance(raw, list) else []
    return tuple(
        {**_entry(one), "top_logprobs": _others(one.get("top_logprobs"))} for one in entries
    )


def _others(raw: Any) -> list[Item]:
    return [_entry(other) for other in raw if _is_entry(other)] if isinstance(raw, list) else []


def _is_entry(raw: Any) -> bool:
    return (
        isinstance(raw, dict)
        and isinstance(raw.get("token"), str)
        and isinstance(raw.get("logprob"), int | float)
    )


def _entry(raw: Item) -> Item:
    """Chat Completions may leave the bytes out; Responses never does."""
    given = raw.get("bytes")
    encoded = given if isinstance(given, list) else list(raw["token"].encode("utf-8", "replace"))
    return {"token": raw["token"], "bytes": encoded, "logprob": raw["logprob"]}
