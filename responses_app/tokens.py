"""An estimate of what texts cost in tokens, made without asking any model."""

from typing import Any

import orjson

from responses_app.compactions import MARK
from responses_app.fold import Item
from responses_app.tool_items import OUTPUTS

CHARS_PER_TOKEN = 4  # of English text, near enough for every current tokenizer
TOKENS_PER_ITEM = 4  # what frames a message: role and separators
WITH_PARTS = ("message", *OUTPUTS)  # of every other item the content has a shape of its own
TOKENS_PER_IMAGE = 765  # one high-detail image of medium size


def tokens_of(chars: int) -> int:
    return -(-chars // CHARS_PER_TOKEN)


def estimate_tokens(items: list[Item], instructions: str | None, tools: list[Any]) -> int:
    tokens = sum(_item_tokens(item) for item in items) + _text_tokens(instructions or "")
    return tokens + sum(_text_tokens(orjson.dumps(tool).decode()) for tool in tools)


def newest_that_fit(
    older: list[Item], window: int, newer: list[Item], instructions: str | None, tools: list[Any]
) -> list[Item]:
    """The older items without the oldest turns, as many as must go; what is newer always stays, and summaries do."""
    room = window - estimate_tokens(newer, instructions, tools)
    starts = [index for index, item in enumerate(older) if item.get("role") == "user"] or [0]
    sizes = [_item_tokens(item) for item in older]
    summed_up = [size if MARK in item else 0 for size, item in zip(sizes, older, strict=True)]
    for start in (0, *(index for index in starts if index)):
        if sum(summed_up[:start]) + sum(sizes[start:]) <= room:
            return [item for index, item in enumerate(older) if index >= start or MARK in item]
    return [item for item in older if MARK in item]


def _item_tokens(item: Item) -> int:
    content = item.get("content") or item.get("output") or item.get("arguments") or ""
    if isinstance(content, str):
        return TOKENS_PER_ITEM + _text_tokens(content)
    if item["type"] not in WITH_PARTS:
        return TOKENS_PER_ITEM + _text_tokens(orjson.dumps(content).decode())
    images: int = sum(part.get("type") == "input_image" for part in content)
    texts: str = "".join(part.get("text") or part.get("refusal") or "" for part in content)
    return TOKENS_PER_ITEM + images * TOKENS_PER_IMAGE + _text_tokens(texts)


def _text_tokens(text: str) -> int:
    return tokens_of(len(text))
