"""Fields of a request that this server has no meaning for: which upstream is sent which of them."""

from collections.abc import Iterable, Mapping
from typing import Any

from gateway_app.config.presets.facts import Preset

RESPONSES_MODE = "codex_responses"
# Fields of Chat Completions that the Responses API does not have.
CHAT_ONLY_FIELDS = (
    "frequency_penalty",
    "logit_bias",
    "prediction",
    "presence_penalty",
    "seed",
    "stop",
    "web_search_options",
)
OWN_PREFIX = "hermes"
OWN_NAMES = frozenset(("conversation_history", "message", "session_id", "system_message"))
# A Responses request has other names for these, or they would change how the answer is read.
NOT_FROM_RESPONSES = frozenset(
    (
        "audio",
        "function_call",
        "functions",
        "logprobs",
        "max_completion_tokens",
        "max_tokens",
        "messages",
        "modalities",
        "n",
        "response_format",
        "stop",
        "web_search_options",
    )
)
# Fields of the Responses API: a chat request that has one must not start a background response.
NOT_FROM_CHAT = frozenset(
    (
        "background",
        "context_management",
        "conversation",
        "include",
        "input",
        "instructions",
        "max_output_tokens",
        "max_tool_calls",
        "previous_response_id",
        "prompt",
        "text",
        "truncation",
    )
)


def sent_fields(
    names: Iterable[str], preset: Preset, api_mode: str, *, is_chat_request: bool
) -> set[str]:
    """Those of the unknown fields of a request that an upstream is sent."""
    return {name for name in names if _is_sent(name, preset, api_mode, is_chat_request)}


def chosen_fields(
    fields: Mapping[str, Any], preset: Preset, api_mode: str, *, is_chat_request: bool
) -> dict[str, Any]:
    sent = sent_fields(fields, preset, api_mode, is_chat_request=is_chat_request)
    return {name: value for name, value in fields.items() if name in sent}


def _is_sent(name: str, preset: Preset, api_mode: str, is_chat_request: bool) -> bool:
    if name.lower().startswith(OWN_PREFIX) or name in OWN_NAMES:
        return False
    if is_chat_request:
        if name in NOT_FROM_CHAT:
            return False
        if name in CHAT_ONLY_FIELDS:
            return api_mode != RESPONSES_MODE
        return preset.takes_unknown_fields
    if api_mode == RESPONSES_MODE:
        return True
    if name in NOT_FROM_RESPONSES:
        return False
    return preset.takes_unknown_fields or name in CHAT_ONLY_FIELDS
