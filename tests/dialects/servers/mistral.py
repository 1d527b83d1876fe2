"""Mistral. Read in mistralai/client-python, vercel/ai ed857f5 (mistral) and the reports named below."""

import json
from collections.abc import Iterator

from gateway_app.config.presets.facts import Continuation
from tests.dialects.dialect import (
    ChatForm,
    Delta,
    Dialect,
    Refused,
    Rule,
    UsageForm,
    schema_of_chat,
    split,
    whole_calls,
)
from tests.dialects.rules import (
    Message,
    arguments_are_objects,
    call_ids_match,
    header,
    known_fields,
    known_message_fields,
    messages,
    no_user_after_tool,
)
from tests.support.model_stub import Answer, Asked, Cut

ORDER = {"type": "invalid_request_message_order", "code": "3230"}
# client-python docs/models/chatcompletionrequest.md
FIELDS = """
    model messages stream tools tool_choice parallel_tool_calls response_format temperature top_p n stop max_tokens
    random_seed presence_penalty frequency_penalty prediction prompt_mode reasoning_effort safe_prompt
    metadata
"""
MESSAGE_FIELDS = ("role", "content", "tool_calls", "tool_call_id", "name", "prefix")


def _reasoning(text: str, size: int) -> Iterator[Delta]:
    """vercel/ai mistral: the content is a list of parts while the model thinks."""
    for piece in split(text, size):
        yield {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": piece}]}]}


def _error(refused: Refused) -> Answer:
    """Flat; eca#231: a validation error has an object where the message is."""
    error = {"object": "error", "type": "invalid_request_error", "param": None, "code": None}
    message: object = refused.message
    if "detail" in refused.fields:
        message = {"detail": refused.fields["detail"]}
    fields = {name: value for name, value in refused.fields.items() if name != "detail"}
    return Answer(refused.status, json.dumps(error | {"message": message} | fields).encode())


def _extra(*location: object) -> Refused:
    detail = {"type": "extra_forbidden", "loc": ["body", *location], "msg": "Extra inputs are not permitted"}
    return Refused("Extra inputs are not permitted", 422, {"detail": [detail]})


def _extra_in_message(index: int, message: Message, name: str) -> Refused:
    return _extra("messages", index, message["role"], name)  # crush#1590: reasoning_content


def _last_role() -> Rule:
    def check(asked: Asked) -> Refused | None:
        last = messages(asked)[-1]
        if last["role"] == "assistant" and not last.get("prefix"):
            text = "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant"
            return Refused(text, 400, ORDER)
        return None

    return check


def _tools_are_there() -> Rule:
    """php-mistral#76: an empty list counts as an extra input."""

    def check(asked: Asked) -> Refused | None:
        return _extra("tools") if asked.body.get("tools") == [] else None

    return check


def _overflow(tokens: int, window: int) -> Refused:
    text = f"Prompt contains {tokens} tokens, too large for model with {window} maximum context length"
    return Refused(text, 400, {"code": "3051"})


MISTRAL = Dialect(
    name="mistral",
    provider="mistral",
    form=ChatForm(
        opening=({"role": "assistant", "content": ""},),
        reasoning=_reasoning,
        calls=whole_calls,
        usage=UsageForm.WITH_FINISH,
    ),
    call_id=lambda number: f"D{number:08d}",
    error=_error,
    rules=(
        header("authorization", Refused("Unauthorized", 401)),
        known_fields(FIELDS, _extra),
        known_message_fields(MESSAGE_FIELDS, _extra_in_message),
        _tools_are_there(),
        call_ids_match(  # gptel#1203
            r"[A-Za-z0-9]{9}",
            lambda given: Refused(
                f"Tool call id was {given} but must be a-z, A-Z, 0-9, with a length of 9.",
                400,
                {"type": "invalid_function_call", "code": "3280"},
            ),
        ),
        arguments_are_objects(Refused("Invalid tool call arguments")),
        no_user_after_tool(Refused("Unexpected role 'user' after role 'tool'", 400, ORDER)),  # datapizza-ai#98
        _last_role(),
    ),
    overflow=_overflow,
    broken_off=(Cut(),),
    continuation=Continuation.PREFIX,
    echoes_prefix=True,  # vercel/ai mistral: the prefix is in the answer again
    has_format=schema_of_chat,
    limit_fields=("max_tokens",),
)
