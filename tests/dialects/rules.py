"""What servers demand of requests. Each rule gives a reason to refuse a request, or None."""

import json
import re
from collections.abc import Callable, Collection, Iterator
from typing import Any

from tests.dialects.dialect import Refused, Rule
from tests.support.model_stub import Asked

Message = dict[str, Any]
Flaw = Callable[[str], Refused]  # from what is wrong, in the server's words

OPENAI_FIELDS = """
    model messages stream stream_options tools tool_choice parallel_tool_calls response_format temperature top_p n
    stop seed logprobs top_logprobs logit_bias presence_penalty frequency_penalty max_completion_tokens max_tokens
    reasoning_effort user service_tier store metadata prompt_cache_key safety_identifier verbosity modalities
    prediction
"""


def messages(asked: Asked) -> list[Message]:
    found: list[Message] = asked.body["messages"]
    return found


def calls(asked: Asked) -> Iterator[Message]:
    for message in messages(asked):
        yield from message.get("tool_calls") or ()


def known_fields(names: str, flaw: Flaw) -> Rule:
    known = names.split()

    def check(asked: Asked) -> Refused | None:
        for name in asked.body:
            if name not in known:
                return flaw(name)
        return None

    return check


def known_message_fields(names: Collection[str], flaw: Callable[[int, Message, str], Refused]) -> Rule:
    def check(asked: Asked) -> Refused | None:
        for index, message in enumerate(messages(asked)):
            for name in message:
                if name not in names:
                    return flaw(index, message, name)
        return None

    return check


def known_roles(names: Collection[str], flaw: Flaw) -> Rule:
    def check(asked: Asked) -> Refused | None:
        for message in messages(asked):
            if message["role"] not in names:
                return flaw(message["role"])
        return None

    return check


def arguments_are_objects(refused: Refused) -> Rule:
    def check(asked: Asked) -> Refused | None:
        for call in calls(asked):
            if not _is_object(call["function"]["arguments"]):
                return refused
        return None

    return check


def one_system_message_first(refused: Refused) -> Rule:
    def check(asked: Asked) -> Refused | None:
        for message in messages(asked)[1:]:
            if message["role"] in ("system", "developer"):
                return refused
        return None

    return check


def roles_alternate(refused: Refused) -> Rule:
    """Templates of Gemma and Mistral raise at two messages of one role in a row."""

    def check(asked: Asked) -> Refused | None:
        before = ""
        for message in messages(asked):
            if message["role"] == before and before in ("user", "assistant"):
                return refused
            before = message["role"]
        return None

    return check


def results_follow_calls(flaw: Flaw) -> Rule:
    def check(asked: Asked) -> Refused | None:
        open_ids: list[str] = []
        for message in messages(asked):
            if message["role"] == "tool":
                if message["tool_call_id"] not in open_ids:
                    return flaw("messages with role 'tool' must answer a message with 'tool_calls'.")
                open_ids.remove(message["tool_call_id"])
            elif open_ids:
                return flaw(f"An assistant message with 'tool_calls' must be followed by tool messages: {open_ids}")
            else:
                open_ids = [call["id"] for call in message.get("tool_calls") or ()]
        return None

    return check


def call_ids_match(pattern: str, flaw: Flaw) -> Rule:
    def check(asked: Asked) -> Refused | None:
        for call in calls(asked):
            if not re.fullmatch(pattern, call["id"]):
                return flaw(call["id"])
        return None

    return check


def no_user_after_tool(refused: Refused) -> Rule:
    def check(asked: Asked) -> Refused | None:
        before = ""
        for message in messages(asked):
            if message["role"] == "user" and before == "tool":
                return refused
            before = message["role"]
        return None

    return check


def content_is_text(may_be_null: Callable[[Message], bool], refused: Refused) -> Rule:
    def check(asked: Asked) -> Refused | None:
        for message in messages(asked):
            if message.get("content", "") is None and not may_be_null(message):
                return refused
        return None

    return check


def calls_have_reasoning(refused: Refused) -> Rule:
    def check(asked: Asked) -> Refused | None:
        for message in messages(asked):
            if message.get("tool_calls") and "reasoning_content" not in message:
                return refused
        return None

    return check


def formats(types: Collection[str], flaw: Flaw) -> Rule:
    def check(asked: Asked) -> Refused | None:
        kind = (asked.body.get("response_format") or {"type": "text"})["type"]
        return None if kind in types else flaw(kind)

    return check


def header(name: str, refused: Refused) -> Rule:
    def check(asked: Asked) -> Refused | None:
        return None if asked.headers.get(name) else refused

    return check


def _is_object(arguments: str) -> bool:
    try:
        return isinstance(json.loads(arguments), dict)
    except ValueError:
        return False
