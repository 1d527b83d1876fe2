"""vLLM. Read in vllm-project/vllm a014e35: entrypoints/openai/chat_completion/, renderers/params.py."""

from collections.abc import Iterator

from gateway_app.config.presets.facts import Continuation
from tests.dialects.dialect import (
    ChatForm,
    Delta,
    Dialect,
    Refused,
    Rule,
    arguments_in_pieces,
    error_object,
    schema_of_chat,
    split,
)
from tests.dialects.rules import arguments_are_objects, one_system_message_first
from tests.support.model_stub import Asked, Raw, sse


def _reasoning(text: str, size: int) -> Iterator[Delta]:
    for piece in split(text, size):
        yield {"reasoning": piece}  # engine/protocol.py DeltaMessage


def _error(message: str, param: str | None = None) -> Refused:
    return Refused(message, 400, {"type": "BadRequestError", "param": param, "code": 400})


def _fields_agree() -> Rule:
    """protocol.py: validators of the whole request."""

    def check(asked: Asked) -> Refused | None:
        body = asked.body
        if body.get("tools") == []:
            return _error("`tools` must not be an empty array.", "tools")
        if body.get("tool_choice") not in (None, "none") and not body.get("tools"):
            return _error("When using `tool_choice`, `tools` must be set.", "tool_choice")
        if body.get("stream_options") and not body.get("stream"):
            return _error("Stream options can only be defined when `stream=True`.", "stream_options")
        if body.get("continue_final_message") and body.get("add_generation_prompt", True):
            return _error("Cannot set both `continue_final_message` and `add_generation_prompt` to True.")
        return None

    return check


def _overflow(tokens: int, window: int) -> Refused:
    """renderers/params.py _token_len_check."""
    message = (
        f"This model's maximum context length is {window} tokens. However, you requested 512 output tokens and your "
        f"prompt contains {tokens} input tokens, for a total of {tokens + 512} tokens. Please reduce the length of "
        "the input prompt or the number of requested output tokens."
    )
    return _error(message, "input_tokens")


VLLM = Dialect(
    name="vllm",
    provider="vllm",
    form=ChatForm(
        opening=({"role": "assistant", "content": ""},),  # serving.py: at the first output of the engine
        reasoning=_reasoning,
        calls=arguments_in_pieces,
    ),
    call_id=lambda number: f"chatcmpl-tool-{number:032x}",  # chat_utils.py make_tool_call_id
    error=error_object,
    rules=(
        _fields_agree(),
        # chat_utils.py _postprocess_messages: json.loads of each; vllm#43995
        arguments_are_objects(_error("Expecting ',' delimiter: line 1 column 12 (char 11)")),
        one_system_message_first(_error("System message must be at the beginning.")),  # vllm#41114
    ),
    overflow=_overflow,
    # serving.py: the error of the engine, then [DONE]
    broken_off=(
        Raw(sse({"error": {"message": "EngineCore died.", "type": "InternalServerError", "code": 500}})),
        Raw(b"data: [DONE]\n\n"),
    ),
    continuation=Continuation.FINAL_MESSAGE,
    has_format=schema_of_chat,
)
