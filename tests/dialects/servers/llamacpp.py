"""llama-server. Read in ggml-org/llama.cpp b21e4de: tools/server/*.cpp, common/chat.cpp."""

from collections.abc import Iterator, Sequence

from gateway_app.config.presets.facts import Continuation
from tests.dialects.dialect import (
    ChatForm,
    Delta,
    Dialect,
    Refused,
    Rule,
    error_object,
    schema_of_chat,
    split,
)
from tests.dialects.rules import arguments_are_objects, formats, one_system_message_first
from tests.support.model_stub import Asked, Call, Raw, sse


def _reasoning(text: str, size: int) -> Iterator[Delta]:
    for piece in split(text, size):
        yield {"reasoning_content": piece}


def _calls(calls: Sequence[Call], size: int) -> Iterator[Delta]:
    """server-chat.cpp: id and type once, the name with them, empty arguments left out."""
    for index, call in enumerate(calls):
        first = {"index": index, "id": call.call_id, "type": "function", "function": {"name": call.name}}
        yield {"tool_calls": [first]}
        for piece in split("".join(call.pieces), size):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _error(message: str, status: int = 400, kind: str = "invalid_request_error") -> Refused:
    return Refused(message, status, {"type": kind, "code": status})  # server-common.cpp format_error_response


def _overflow(tokens: int, window: int) -> Refused:
    """server-context.cpp, server-task.cpp server_task_result_error."""
    message = f"request ({tokens} tokens) exceeds the available context size ({window} tokens), try increasing it"
    fields = {"code": 400, "type": "exceed_context_size_error", "n_prompt_tokens": tokens, "n_ctx": window}
    return Refused(message, 400, fields)


def _one_assistant_at_the_end() -> Rule:
    """server-common.cpp oaicompat_chat_params_parse."""

    def check(asked: Asked) -> Refused | None:
        roles = [message["role"] for message in asked.body["messages"]]
        if roles[-2:] == ["assistant", "assistant"]:
            return _error("Cannot have 2 or more assistant messages at the end of the list.")
        return None

    return check


LLAMACPP = Dialect(
    name="llamacpp",
    provider="llamacpp",
    form=ChatForm(
        extra={"system_fingerprint": "b6000-abcdef"},
        # server-context.cpp: a ping while the prompt is read; then role and null in a chunk of their own
        opening=(b":\n\n", {"role": "assistant", "content": None}),
        reasoning=_reasoning,
        calls=_calls,
        last_extra={"timings": {"cache_n": 0, "prompt_n": 1, "predicted_n": 1}},
    ),
    call_id=lambda number: f"aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU{number:03d}",  # 32 letters and digits
    error=error_object,
    rules=(
        # am17an/llama.cpp#43: the template's parser fails on them
        arguments_are_objects(_error("Failed to parse tool call arguments as JSON", 500, "server_error")),
        # lemonade#2674: the template of Qwen 3.5
        one_system_message_first(_error("System message must be at the beginning.")),
        formats(
            ("text", "json_object", "json_schema"),
            lambda kind: _error(f'response_format type must be one of "text" or "json_object", but got: {kind}'),
        ),
        _one_assistant_at_the_end(),
    ),
    overflow=_overflow,
    # server-context.cpp: an error event, and no [DONE]
    broken_off=(Raw(sse({"error": {"code": 500, "message": "Compute error.", "type": "server_error"}})),),
    continuation=Continuation.TRAILING,  # server-common.cpp: automatic
    has_format=schema_of_chat,
)
