"""A running hash over a conversation: how history that a client sends again is recognised.

The hash after a turn covers everything up to its last output. A request whose first items have
that hash repeats that turn and all before it, so only what follows needs to be stored.
"""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from responses_app.protocol.items import CALLS, output_ids
from responses_app.protocol.snapshot import Item

EMPTY = ""


def running_hashes(start: str, items: Iterable[Item]) -> Iterator[str]:
    """The hash behind each item."""
    current = start
    for item in items:
        essence = _essence(item)
        if essence is not None:
            told = orjson.dumps(essence, option=orjson.OPT_SORT_KEYS)
            current = hashlib.sha256(current.encode() + told).hexdigest()
        yield current


def hash_after(start: str, items: Iterable[Item]) -> str:
    current = start
    for current in running_hashes(start, items):  # noqa: B007
        pass
    return current


def spoken(output: list[Item]) -> list[Item]:
    """An output as most chat clients send it back: its text in one message, and the calls that are theirs."""
    answered = output_ids(output)
    messages = [item for item in output if item["type"] == "message"]
    text = "".join(part.get("text", "") for item in messages for part in item["content"])
    said = [
        {**item, "content": [{"type": "output_text", "text": text, "annotations": []}]}
        for item in messages[:1]
    ]
    calls = [item for item in output if item["type"] in CALLS and item["call_id"] not in answered]
    return [*said, *calls]


def may_end_a_turn(item: Item) -> bool:
    """Only behind something the model said can a client have stopped repeating."""
    return bool(item["type"] != "message" or item["role"] == "assistant")


def _essence(item: Item) -> list[Any] | None:
    """What makes two items the same, however a client writes them; reasoning comes and goes."""
    match item["type"]:
        case "message":
            return ["m", item["role"], _parts(item["content"])]
        case "function_call":
            return ["c", item["call_id"], item["name"], item["arguments"]]
        case "function_call_output":
            return ["o", item["call_id"], _parts(item["output"])]
        case "reasoning":
            return None
        case _:
            return ["x", {key: value for key, value in item.items() if key not in ("id", "status")}]


def _parts(content: str | list[Item]) -> list[str]:
    """Each part as its kind and its words; a plain string is one part of text."""
    if isinstance(content, str):
        return ["t:" + content]
    return [_part(part) for part in content]


def _part(part: Item) -> str:
    for kind, key in (("t", "text"), ("r", "refusal"), ("i", "image_url")):
        if key in part:
            return f"{kind}{part.get('detail') or ''}:{part[key]}"
    return "?"
