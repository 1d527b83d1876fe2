"""DeepSeek. Read in api-docs.deepseek.com (thinking_mode, json_mode, chat_prefix_completion, rate_limit)."""

import json
from collections.abc import Iterator

from gateway_app.config.presets.facts import Continuation
from tests.dialects.dialect import (
    Body,
    ChatForm,
    Delta,
    Dialect,
    Refused,
    Rule,
    UsageForm,
    arguments_in_pieces,
    error_object,
    split,
)
from tests.dialects.rules import (
    calls_have_reasoning,
    formats,
    header,
    known_roles,
    messages,
    results_follow_calls,
)
from tests.support.model_stub import Asked, Raw, sse

INVALID = {"code": "invalid_request_error"}


def _invalid(message: str) -> Refused:
    return Refused(message, 400, INVALID)


def _reasoning(text: str, size: int) -> Iterator[Delta]:
    for piece in split(text, size):
        yield {"content": None, "reasoning_content": piece}


def _beta_for_prefixes() -> Rule:
    """chat_prefix_completion: only at the address with /beta, and only for the last message."""

    def check(asked: Asked) -> Refused | None:
        for message in messages(asked):
            if message.get("prefix") and (message is not messages(asked)[-1] or "/beta/" not in asked.path):
                return _invalid("The prefix of a message is a feature of the beta API.")
        return None

    return check


def _word_json() -> Rule:
    """stagehand#1204."""

    def check(asked: Asked) -> Refused | None:
        if asked.body.get("response_format") and "json" not in json.dumps(messages(asked)).lower():
            return _invalid("Prompt must contain the word 'json' in some form to use 'response_format'")
        return None

    return check


def _overflow(tokens: int, window: int) -> Refused:
    message = (
        f"This model's maximum context length is {window} tokens. However, you requested {tokens} tokens ({tokens} in "
        "the messages, 0 in the completion). Please reduce the length of the messages or completion."
    )
    return _invalid(message)


def _has_format(body: Body, schema: Body) -> bool:
    """json_mode: the schema is in the prompt."""
    shown = str(body["messages"][0]["content"])
    return body.get("response_format") == {"type": "json_object"} and json.dumps(schema["required"][0]) in shown


CUT = {"index": 0, "delta": {}, "finish_reason": "insufficient_system_resource"}

DEEPSEEK = Dialect(
    name="deepseek",
    provider="deepseek",
    form=ChatForm(
        extra={"system_fingerprint": "fp_1"},
        opening=(b": keep-alive\n\n", {"role": "assistant", "content": None, "reasoning_content": ""}),  # rate_limit
        reasoning=_reasoning,
        calls=arguments_in_pieces,
        usage=UsageForm.WITH_FINISH,
    ),
    call_id=lambda number: f"call_00_{number:020d}",
    error=error_object,
    rules=(
        header("authorization", Refused("Authentication Fails", 401, {"type": "authentication_error"})),
        # modelparams.dev#29, eko#281: of every message with calls, in all later requests
        calls_have_reasoning(_invalid("The `reasoning_content` in the thinking mode must be passed back to the API.")),
        known_roles(  # pi#1048
            ("system", "user", "assistant", "tool"),
            lambda role: _invalid(f"Failed to deserialize the JSON body: unknown variant `{role}`"),
        ),
        results_follow_calls(_invalid),  # gptme#3421
        formats(  # inspect_ai#4916
            ("text", "json_object"), lambda kind: _invalid("This response_format type is unavailable now")
        ),
        _word_json(),
        _beta_for_prefixes(),
    ),
    overflow=_overflow,
    broken_off=(Raw(sse({"id": "1", "choices": [CUT]})), Raw(b"data: [DONE]\n\n")),  # create-chat-completion
    continuation=Continuation.PREFIX,
    has_format=_has_format,
    limit_fields=("max_tokens",),  # create-chat-completion
    must_return="A tool will know.",
)
