"""An estimate of what texts cost in tokens, made without asking any model."""

from typing import Any

import orjson

from responses_app.protocol.items import MARK, OUTPUTS, Item

CHARS_PER_TOKEN = 4  # of English text, near enough for every current tokenizer
TOKENS_PER_ITEM = 4  # what frames a message: role and separators
WITH_PARTS = ("message", *OUTPUTS)  # of every other item the content has a shape of its own
TOKENS_PER_IMAGE = 765  # one high-detail image of medium size


def tokens_of(chars: int) -> int:
    return -(-chars // CHARS_PER_TOKEN)


def estimate_tokens(items: list[Item], instructions: str | None, tools: list[Any]) -> int:
    tokens = sum(_item_tokens(item) for item in items) + _text_tokens(instructions or "")
    return tokens + sum(_text_tokens(orjson.dumps(tool).decode()) for tool in tools)


def newest_that_fit(older: list[Item], room: int) -> list[Item]:
    """The older items without the oldest turns, as many as must go; summaries stay."""
    sizes = [_item_tokens(item) for item in older]
    tokens = sum(sizes)
    if tokens <= room:
        return older
    for start, item in enumerate(older):
        if start and item.get("role") == "user" and tokens <= room:
            return [kept for kept in older[:start] if MARK in kept] + older[start:]
        if MARK not in item:
            tokens -= sizes[start]
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
