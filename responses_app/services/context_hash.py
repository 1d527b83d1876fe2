"""A running hash over a conversation: how history that a client sends again is recognised.

The hash after a turn covers everything up to its last output. A request whose first items have
that hash repeats that turn and all before it, so only what follows needs to be stored.
"""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from responses_app.fold import Item

EMPTY = ""
# Ends of what a model said; only behind one of these can a client have stopped repeating.
OUTPUT_ENDS = ("function_call", "function_call_output")


def running_hashes(start: str, items: Iterable[Item]) -> Iterator[str]:
    """The hash behind each item."""
    current = start
    for item in items:
        essence = _essence(item)
        if essence is not None:
            current = hashlib.sha256(current.encode() + orjson.dumps(essence)).hexdigest()
        yield current


def hash_after(start: str, items: Iterable[Item]) -> str:
    current = start
    for current in running_hashes(start, items):  # noqa: B007
        pass
    return current


def may_end_a_turn(item: Item) -> bool:
    return item["type"] in OUTPUT_ENDS or item.get("role") == "assistant"


def _essence(item: Item) -> list[Any] | None:
    """What makes two items the same, however a client writes them; reasoning comes and goes."""
    match item["type"]:
        case "message":
            return ["m", item["role"], _parts(item["content"])]
        case "function_call":
            return ["c", item["call_id"], item["name"], item["arguments"]]
        case "function_call_output":
            return ["o", item["call_id"], _parts(item["output"])]
        case _:
            return None


def _parts(content: str | list[Item]) -> list[str]:
    if isinstance(content, str):
        return [content]
    return [str(part.get("text") or part.get("refusal") or part.get("image_url") or "") for part in content]
