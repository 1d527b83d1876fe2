"""OpenAI's Chat Completions. Read in openai-openapi; archi#497, 9router#560."""

from tests.dialects.dialect import (
    ChatForm,
    Dialect,
    Refused,
    Rule,
    arguments_in_pieces,
    error_object,
    schema_of_chat,
)
from tests.dialects.rules import (
    OPENAI_FIELDS,
    header,
    known_fields,
    known_message_fields,
    known_roles,
    results_follow_calls,
)
from tests.support.model_stub import Asked, Cut

MESSAGE_FIELDS = ("role", "content", "name", "refusal", "tool_calls", "tool_call_id", "audio")


def unknown_parameter(name: str) -> Refused:
    return Refused(f"Unknown parameter: '{name}'.", 400, {"param": name, "code": "unknown_parameter"})


def no_max_tokens() -> Rule:
    """9router#560: reasoning models."""

    def check(asked: Asked) -> Refused | None:
        if "max_tokens" not in asked.body:
            return None
        text = "'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
        return Refused(text, 400, {"param": "max_tokens", "code": "unsupported_parameter"})

    return check


def too_long(tokens: int, window: int) -> Refused:
    text = (
        f"This model's maximum context length is {window} tokens. However, your messages resulted in {tokens} tokens. "
        "Please reduce the length of the messages."
    )
    return Refused(text, 400, {"param": "messages", "code": "context_length_exceeded"})


CHAT_RULES: tuple[Rule, ...] = (
    known_fields(OPENAI_FIELDS, unknown_parameter),
    known_message_fields(MESSAGE_FIELDS, lambda index, message, name: unknown_parameter(f"messages[{index}].{name}")),
    known_roles(
        ("system", "developer", "user", "assistant", "tool"), lambda role: Refused(f"Invalid value: '{role}'.")
    ),
    no_max_tokens(),
    results_follow_calls(Refused),
)

OPENAI = Dialect(
    name="openai",
    provider="openai",
    form=ChatForm(
        extra={"service_tier": "default", "system_fingerprint": None, "obfuscation": "x"},
        opening=({"role": "assistant", "content": "", "refusal": None},),
        calls=arguments_in_pieces,
    ),
    call_id=lambda number: f"call_{number:024d}",
    error=error_object,
    rules=(
        header("authorization", Refused("Incorrect API key provided.", 401, {"code": "invalid_api_key"})),
        *CHAT_RULES,
    ),
    overflow=too_long,
    broken_off=(Cut(),),
    has_format=schema_of_chat,
    limit_fields=("max_completion_tokens",),
)
