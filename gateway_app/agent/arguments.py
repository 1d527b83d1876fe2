"""The arguments of a tool call: as a tool takes them, and as a model is sent them again.

What the model wrote stays in the log and in the response, as clients saw it. Upstreams refuse a
conversation in which the arguments of a call are not a JSON object, and would refuse every later
turn too: they are sent the repaired object, or an empty one.
"""

import json
from collections.abc import Iterable
from typing import Any

import orjson

from gateway_app.agent.argument_repair import repaired
from gateway_app.agent.argument_types import fitted
from responses_app.protocol.items import Item

NO_ARGUMENTS = "{}"
QUOTED_CHARS = 200  # of what the model wrote, which it does not see again
_KINDS = {list: "an array", str: "a string", bool: "a boolean", int: "a number", float: "a number"}


class BadArguments(ValueError):
    """The message is for the model, which may call again."""


def read_arguments(written: str, schema: dict[str, Any]) -> dict[str, Any]:
    """The arguments for a tool with this JSON schema; the ValueErrors it raises are for the model."""
    return fitted(_read_object(written), schema)


def sent_arguments(written: str) -> str:
    """What an upstream is sent in a conversation: the same text gives the same result every time."""
    if _is_object(written):
        return written
    try:
        found = _read_object(written)
    except BadArguments:
        return NO_ARGUMENTS
    return json.dumps(found, ensure_ascii=False, separators=(",", ":"))


def with_sent_arguments(items: Iterable[Item]) -> list[Item]:
    """A conversation that upstreams accept. The free text of custom tools is no JSON, and stays."""
    sent = []
    for item in items:
        if item.get("type") == "function_call" and not _is_object(item["arguments"]):
            item = item.copy()
            item["arguments"] = sent_arguments(item["arguments"])
        sent.append(item)
    return sent


def _is_object(written: str) -> bool:
    try:
        return isinstance(orjson.loads(written), dict)
    except orjson.JSONDecodeError:
        return False


def _read_object(written: str) -> dict[str, Any]:
    if not written.strip():
        return {}
    found = _parsed(written)
    if isinstance(found, str):  # some models put the JSON into a string
        found = _parsed(found)
    if isinstance(found, dict):
        return found
    kind = _KINDS.get(type(found), "null")
    raise BadArguments(_refusal(f"they are {kind}", written, 0))


def _parsed(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        position = error.pos
    try:
        return repaired(text)
    except ValueError as error:  # also of a number with thousands of digits
        raise BadArguments(_refusal(str(error), text, position)) from None


def _refusal(reason: str, text: str, position: int) -> str:
    start = max(0, position - QUOTED_CHARS // 2)
    quoted = text[start : start + QUOTED_CHARS]
    return (
        f"the arguments must be one JSON object: {reason}, at character {position} in "
        f"{quoted!r}. The tool was not run. Call it again with valid JSON."
    )
