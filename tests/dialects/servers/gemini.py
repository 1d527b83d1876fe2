"""Gemini's compatible endpoint. Read in ai.google.dev (openai, thought-signatures); open-webui/computer#224."""

import json
from collections.abc import Iterator, Sequence

from tests.dialects.dialect import (
    ChatForm,
    Delta,
    Dialect,
    Refused,
    Rule,
    UsageForm,
    schema_of_chat,
)
from tests.dialects.rules import arguments_are_objects, header, known_fields, messages
from tests.support.model_stub import Answer, Asked, Call, Cut

SIGNATURE = {"google": {"thought_signature": "c2lnbmVk"}}
# SkyrimNet#77: no frequency_penalty. openhanako#2494, picoclaw#790: no prompt_cache_key; safety_identifier is as new.
FIELDS = """
    model messages stream stream_options tools tool_choice parallel_tool_calls response_format temperature top_p n
    stop max_tokens max_completion_tokens reasoning_effort extra_body presence_penalty seed logprobs top_logprobs user
    service_tier store metadata modalities verbosity
"""


def _calls(calls: Sequence[Call], size: int) -> Iterator[Delta]:
    """computer#224: no index, whole, and a signature with the first of several calls only."""
    for number, call in enumerate(calls):
        function = {"name": call.name, "arguments": "".join(call.pieces)}
        whole = {"id": call.call_id, "type": "function", "function": function}
        if number == 0:
            whole["extra_content"] = SIGNATURE
        yield {"role": "assistant", "tool_calls": [whole]}


def _error(refused: Refused) -> Answer:
    """free-claude-code#542, opensquilla#225: a list of one error."""
    error = {"code": refused.status, "message": refused.message, "status": "INVALID_ARGUMENT"}
    return Answer(refused.status, json.dumps([{"error": error}]).encode())


def _signatures_of_the_turn() -> Rule:
    """thought-signatures: checked from the user's last message on."""

    def check(asked: Asked) -> Refused | None:
        roles = [message["role"] for message in messages(asked)]
        turn = len(roles) - roles[::-1].index("user")
        for position, message in enumerate(messages(asked)[turn:], turn):
            calls = message.get("tool_calls")
            if calls and calls[0].get("extra_content") != SIGNATURE:
                name = calls[0]["function"]["name"]
                return Refused(
                    "Function call is missing a thought_signature in functionCall parts. This is required for tools to "
                    f"work correctly. Additional data, function call `default_api:{name}`, position {position}."
                )
        return None

    return check


def _overflow(tokens: int, window: int) -> Refused:
    return Refused(f"The input token count ({tokens}) exceeds the maximum number of tokens allowed ({window}).")


GEMINI = Dialect(
    name="gemini",
    provider="gemini",
    form=ChatForm(
        has_role_in_first=True,
        piece_chars=12,  # a chunk has several tokens
        calls=_calls,
        calls_reason="stop",  # python-genai#2868
        usage=UsageForm.WITH_FINISH,
    ),
    call_id=lambda number: f"function-call-{number:019d}",
    error=_error,
    rules=(
        header("authorization", Refused("Missing or invalid Authorization header.", 401)),
        known_fields(
            FIELDS, lambda name: Refused(f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.')
        ),
        arguments_are_objects(Refused("Request contains an invalid argument.")),
        _signatures_of_the_turn(),
    ),
    overflow=_overflow,
    broken_off=(Cut(),),
    has_format=schema_of_chat,
    sends_broken_json=False,  # arguments are encoded from a structure
    must_return=SIGNATURE["google"]["thought_signature"],
)
