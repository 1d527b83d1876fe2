"""Ollama. Read in ollama/ollama fb30760: openai/openai.go, middleware/openai.go, server/prompt.go."""

from collections.abc import Iterator

from tests.dialects.dialect import (
    ChatForm,
    Delta,
    Dialect,
    Refused,
    error_object,
    schema_of_chat,
    split,
    whole_calls,
)
from tests.dialects.rules import arguments_are_objects, content_is_text
from tests.support.model_stub import Raw, sse


def _reasoning(text: str, size: int) -> Iterator[Delta]:
    """openai.go Delta: `content` is kept when empty, beside `reasoning`."""
    for piece in split(text, size):
        yield {"content": "", "reasoning": piece}


OLLAMA = Dialect(
    name="ollama",
    provider="ollama",
    form=ChatForm(
        extra={"system_fingerprint": "fp_ollama"},
        has_role_in_first=True,  # openai.go ToStreamChunks
        reasoning=_reasoning,
        calls=whole_calls,  # server/routes.go: parsed calls leave in one message
    ),
    call_id=lambda number: f"call_{number:08x}",
    error=error_object,  # openai.go NewError
    rules=(
        # openai.go FromCompletionToolCall
        arguments_are_objects(Refused("invalid tool call arguments")),
        # openai.go FromChatRequest: content is only optional if there are calls
        content_is_text(
            lambda message: bool(message.get("tool_calls")), Refused("invalid message content type: <nil>")
        ),
        # Unknown fields are dropped by the JSON decoder: no rule.
    ),
    overflow=None,  # server/prompt.go chatPrompt: from the front, system messages excepted
    # middleware/openai.go writeResponse: an error line becomes an empty delta, then the body ends
    broken_off=(Raw(sse({"id": "chatcmpl-1", "choices": [{"index": 0, "delta": {"content": ""}}]})),),
    has_format=schema_of_chat,  # openai.go: json_schema.schema is the grammar
    sends_broken_json=False,  # openai.go ToToolCalls encodes parsed arguments
    limit_fields=("max_tokens",),  # openai.go ChatCompletionRequest
)
