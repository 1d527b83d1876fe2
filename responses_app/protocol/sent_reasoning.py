"""Which reasoning goes back to the upstream with a conversation, and how much that is."""

from collections.abc import Sequence
from enum import StrEnum

import orjson

from responses_app.protocol.file_tokens import BASE64_CHARS_PER_TOKEN
from responses_app.protocol.items import Item
from responses_app.protocol.reasoning_items import reasoning_text
from responses_app.protocol.token_estimate import (
    CHARS_PER_TOKEN,
    TOKENS_PER_ITEM,
    item_tokens,
    text_tokens,
)


class SentReasoning(StrEnum):
    """What an upstream is sent of the reasoning before."""

    NONE = "none"
    LOOP = "loop"  # the text of the tool loop under way
    ALL = "all"  # the text of every turn
    ENCRYPTED = "encrypted"  # what the upstream encrypted, of every turn


def request_sizes(items: Sequence[Item], sent: SentReasoning = SentReasoning.LOOP) -> list[int]:
    """The tokens of each item of a whole request, with the reasoning that is really sent."""
    loop_start = _loop_start(items)
    sizes = []
    for index, item in enumerate(items):
        if item.get("type") != "reasoning":
            sizes.append(item_tokens(item) + _state_tokens(item))
        elif sent is SentReasoning.ENCRYPTED:
            sizes.append(TOKENS_PER_ITEM + _encrypted_tokens(item))
        elif sent is SentReasoning.ALL or (sent is SentReasoning.LOOP and index >= loop_start):
            sizes.append(TOKENS_PER_ITEM + _reasoning_tokens(items, index))
        else:
            sizes.append(TOKENS_PER_ITEM)
    return sizes


def _loop_start(items: Sequence[Item]) -> int:
    """Behind the last message of the user, where templates keep the reasoning."""
    start = len(items)
    while start and items[start - 1].get("role") != "user":
        start -= 1
    return start


def _reasoning_tokens(items: Sequence[Item], index: int) -> int:
    """An item behind it whose state has the same text is sent instead."""
    if index + 1 < len(items) and _state_tokens(items[index + 1]):
        return 0
    return text_tokens(reasoning_text(items[index]))


def _encrypted_tokens(item: Item) -> int:
    encrypted = item.get("encrypted_content") or ""
    found = item.get("provider_state")
    if found is not None:
        encrypted = found["state"].get("encrypted_content") or encrypted
    return len(encrypted) // BASE64_CHARS_PER_TOKEN


def _state_tokens(item: Item) -> int:
    """Of the state of a message or a call: details of its reasoning, and signatures."""
    found = item.get("provider_state")
    if not found or not found["state"]:
        return 0
    return len(orjson.dumps(found["state"])) // CHARS_PER_TOKEN
