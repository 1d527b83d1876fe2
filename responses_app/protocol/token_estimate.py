"""An estimate of the tokens that items take, made without any model."""

from typing import Any

import orjson

from responses_app.protocol.items import MARK, OUTPUTS, Item, content_text_with_refusals

CHARS_PER_TOKEN = 4  # of English text, near enough for every current tokenizer
TOKENS_PER_ITEM = 4  # what frames a message: role and separators
WITH_PARTS = OUTPUTS | {"message"}  # the content of other items has no parts
TOKENS_PER_IMAGE = 765  # one high-detail image of medium size


def tokens_of(chars: int) -> int:
    return -(-chars // CHARS_PER_TOKEN)


def estimate_tokens(items: list[Item], instructions: str | None, tools: list[Any]) -> int:
    tokens = _text_tokens(instructions or "")
    for item in items:
        tokens += _item_tokens(item)
    for tool in tools:
        tokens += _text_tokens(orjson.dumps(tool).decode())
    return tokens


def newest_that_fit(older: list[Item], room: int) -> list[Item]:
    """The older items without the oldest turns, as many as must go; summaries stay."""
    sizes = [_item_tokens(item) for item in older]
    tokens = sum(sizes)
    if tokens <= room:
        return older
    for start, item in enumerate(older):
        if start and item.get("role") == "user" and tokens <= room:
            return _summaries(older[:start]) + older[start:]
        if MARK not in item:
            tokens -= sizes[start]
    return _summaries(older)


def _summaries(items: list[Item]) -> list[Item]:
    return [item for item in items if MARK in item]


def _item_tokens(item: Item) -> int:
    if item.get("type") == "reasoning":
        return TOKENS_PER_ITEM  # its text goes back in the tool loop under way, if at all
    content = item.get("content") or item.get("output") or item.get("arguments") or ""
    if isinstance(content, str):
        return TOKENS_PER_ITEM + _text_tokens(content)
    if item["type"] not in WITH_PARTS:
        return TOKENS_PER_ITEM + _text_tokens(orjson.dumps(content).decode())
    tokens = TOKENS_PER_ITEM + _text_tokens(content_text_with_refusals(content))
    for part in content:
        if part.get("type") == "input_image":
            tokens += TOKENS_PER_IMAGE
    return tokens


def _text_tokens(text: str) -> int:
    return tokens_of(len(text))
