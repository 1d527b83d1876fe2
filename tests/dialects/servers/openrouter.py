"""OpenRouter. Read in openrouter.ai/docs (streaming, reasoning-tokens, errors); agent-os#2214, jp#978."""

from collections.abc import Iterator

from tests.dialects.dialect import (
    ChatForm,
    Delta,
    Dialect,
    Refused,
    arguments_in_pieces,
    error_object,
    schema_of_chat,
    split,
)
from tests.dialects.rules import arguments_are_objects, header, results_follow_calls
from tests.support.model_stub import Raw, Step, sse


def _reasoning(text: str, size: int) -> Iterator[Delta]:
    """reasoning-tokens: the text, and the same as a detail."""
    for piece in split(text, size):
        detail = {"type": "reasoning.text", "text": piece, "index": 0, "format": "unknown"}
        yield {"role": "assistant", "content": "", "reasoning": piece, "reasoning_details": [detail]}


def _provider_error(message: str) -> Refused:
    return Refused(message, 400, {"code": 400, "metadata": {"provider_name": "A provider"}})


def _overflow(tokens: int, window: int) -> tuple[Step, ...]:
    """jp#978: behind the head of the answer, in a chunk without choices."""
    limit = f"This endpoint's maximum context length is {window} tokens."
    error = {"code": 400, "message": f"{limit} However, you requested about {tokens} tokens."}
    return Raw(b": OPENROUTER PROCESSING\n\n"), Raw(sse({"id": "gen-1", "choices": [], "error": error}))


BROKEN = {
    "id": "gen-1",
    "object": "chat.completion.chunk",
    "provider": "A provider",
    "error": {"code": "server_error", "message": "Provider disconnected unexpectedly"},
    "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}],
}

OPENROUTER = Dialect(
    name="openrouter",
    provider="openrouter",
    form=ChatForm(
        extra={"provider": "A provider"},
        opening=(b": OPENROUTER PROCESSING\n\n", b": OPENROUTER PROCESSING\n\n", {"role": "assistant", "content": ""}),
        reasoning=_reasoning,
        calls=arguments_in_pieces,
    ),
    call_id=lambda number: f"tool_{number}_get_weather",
    error=error_object,
    rules=(
        header("authorization", Refused("No auth credentials found", 401, {"code": 401})),
        arguments_are_objects(_provider_error("Provider returned error")),
        results_follow_calls(_provider_error),
    ),
    overflow=_overflow,
    broken_off=(Raw(sse(BROKEN)),),
    has_format=schema_of_chat,
    limit_fields=("max_tokens",),  # pydantic-ai 4fda389 openrouter.py
)
