"""The tokens that an upstream counted, wherever its answer has them."""

from dataclasses import fields
from typing import Any

from gateway_app.agent.events import Usage
from gateway_app.providers.openai.sse import Event

# Of one answer; a larger count is an error of the server, and no column holds it.
MAX_TOKENS = 1_000_000_000


def read_usage(raw: Any) -> Usage:
    """The counts of either protocol; what is missing or odd counts as zero."""
    given = _mapping(raw)
    inputs = _mapping(given.get("input_tokens_details") or given.get("prompt_tokens_details"))
    outputs = _mapping(given.get("output_tokens_details") or given.get("completion_tokens_details"))
    input_tokens = _count(given.get("input_tokens", given.get("prompt_tokens")))
    output_tokens = _count(given.get("output_tokens", given.get("completion_tokens")))
    reasoning_tokens = _count(outputs.get("reasoning_tokens"))
    whole = input_tokens + output_tokens + reasoning_tokens
    if reasoning_tokens and whole == _count(given.get("total_tokens")):
        output_tokens += reasoning_tokens  # xAI counts them beside the completion
    return Usage(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cached_tokens=_cached_tokens(given, inputs),
        cache_write_tokens=_count(inputs.get("cache_write_tokens")),
        reasoning_tokens=reasoning_tokens,
    )


def usage_in_chunk(chunk: Event) -> Usage | None:
    """Of a chunk or a whole answer of Chat Completions; None for most chunks."""
    if chunk.get("usage"):
        found = read_usage(chunk["usage"])
    elif chunk.get("x_groq"):
        found = read_usage(_mapping(chunk["x_groq"]).get("usage"))
    elif chunk.get("timings"):
        found = _read_timings(_mapping(chunk["timings"]))
    else:
        return None
    if found == Usage():
        return None
    return found


def newer(known: Usage, found: Usage) -> Usage:
    """Counts grow, and may come one by one: a later count replaces an earlier one unless it is zero."""
    if known == Usage():
        return found
    counts: dict[str, Any] = {}
    for field in fields(Usage):
        counts[field.name] = getattr(found, field.name) or getattr(known, field.name)
    return Usage(**counts)


def _cached_tokens(given: dict[str, Any], inputs: dict[str, Any]) -> int:
    """DeepSeek and Mistral have names of their own."""
    for value in (
        inputs.get("cached_tokens"),
        given.get("prompt_cache_hit_tokens"),
        given.get("num_cached_tokens"),
    ):
        if _count(value):
            return _count(value)
    return 0


def _read_timings(timings: dict[str, Any]) -> Usage:
    """llama-server sends them with its last chunk, whatever the request asks for."""
    cached_tokens = _count(timings.get("cache_n"))
    return Usage(
        input_tokens=_count(timings.get("prompt_n")) + cached_tokens,
        output_tokens=_count(timings.get("predicted_n")),
        cached_tokens=cached_tokens,
    )


def _mapping(value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    return {}


def _count(value: Any) -> int:
    if type(value) is int and 0 < value <= MAX_TOKENS:
        return value
    return 0
