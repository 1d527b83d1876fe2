"""llama-cpp-python's server. Read in abetlen/llama-cpp-python 3691546: server/app.py, errors.py, types.py."""

from collections.abc import Iterator

from tests.dialects.dialect import (
    Body,
    ChatForm,
    Delta,
    Dialect,
    Refused,
    UsageForm,
    calls_as_text,
    content,
    error_object,
)
from tests.dialects.rules import content_is_text, formats, known_roles
from tests.support.model_stub import Raw


def _reasoning(text: str, size: int) -> Iterator[Delta]:
    """Nothing is parsed: the model's tags stay in the text."""
    yield from content(f"<think>{text}</think>\n\n", size)


def _invalid(message: str) -> Refused:
    """errors.py: what the request model refuses is wrapped as an internal error."""
    fields = {"type": "internal_server_error", "param": None, "code": None}
    return Refused(f"[{{'type': 'literal_error', 'msg': \"{message}\"}}]", 500, fields)


def _overflow(tokens: int, window: int) -> Refused:
    """errors.py context_length_exceeded."""
    message = f"This model's maximum context length is {window} tokens. However, you requested {tokens} tokens"
    fields = {"type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded"}
    return Refused(message, 400, fields)


def _has_format(body: Body, schema: Body) -> bool:
    return bool(body.get("response_format") == {"type": "json_object", "schema": schema})


LLAMA_CPP_PYTHON = Dialect(
    name="llama-cpp-python",
    provider="llama-cpp-python",
    form=ChatForm(
        opening=({"role": "assistant"},),  # llama_chat_format.py _convert_text_completion_chunks_to_chat
        reasoning=_reasoning,
        calls=calls_as_text,  # templates are rendered with tools; what the model writes is not parsed
        calls_reason="stop",
        usage=UsageForm.NONE,  # chunks have none
    ),
    call_id=lambda number: f"unused-{number}",
    error=error_object,
    rules=(
        # llama_types.py ChatCompletionRequestAssistantMessage: content is NotRequired[str]
        content_is_text(lambda message: message["role"] != "assistant", _invalid("Input should be a valid string")),
        known_roles(
            ("system", "user", "assistant", "tool", "function"),
            lambda role: _invalid("Input should be 'system', 'user', 'assistant', 'tool' or 'function'"),
        ),
        # llama_types.py ChatCompletionRequestResponseFormat
        formats(("text", "json_object"), lambda kind: _invalid("Input should be 'text' or 'json_object'")),
    ),
    overflow=_overflow,
    # app.py get_event_publisher: the error is raised behind the head of the answer, which stays empty
    hides_stream_errors=True,
    broken_off=(Raw(b"data: [DONE]\n\n"),),  # app.py: interrupt_requests, when another request comes
    has_format=_has_format,
    counts_tokens=False,
    limit_fields=("max_tokens",),  # types.py CreateChatCompletionRequest
)
