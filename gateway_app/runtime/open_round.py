"""The round that has not finished: what it has spent up to now, by estimate."""

from collections.abc import Iterable

from gateway_app.agent.events import Usage
from responses_app.protocol.items import (
    ARGUMENTS_OF,
    Item,
    call_arguments,
    content_text_with_refusals,
)
from responses_app.protocol.reasoning_items import reasoning_text
from responses_app.protocol.token_estimate import tokens_of


class OpenRound:
    """Follows a turn; its usage is what no upstream has counted."""

    def __init__(self, first_item: int = 0) -> None:
        self._first_item = first_item
        self._input_tokens = 0

    def begin_answer(self, input_tokens: int) -> None:
        self._input_tokens += input_tokens

    def end(self, item_count: int) -> None:
        """The upstream has counted everything before here, or the attempt is over."""
        self._first_item = item_count
        self._input_tokens = 0

    def usage(self, output: list[Item]) -> Usage:
        """``output`` has all items of the response up to now."""
        output_tokens = written_tokens(output[self._first_item :])
        if not self._input_tokens and not output_tokens:
            return Usage()
        return Usage(self._input_tokens, output_tokens, is_estimated=True)


def written_tokens(items: Iterable[Item]) -> int:
    """By the model: not by a tool or the user, nor in an item that only its upstream can read."""
    tokens = 0
    for item in items:
        tokens += tokens_of(_chars_written(item))
    return tokens


def is_answer(item: Item) -> bool:
    return bool(item["type"] == "message" and item["role"] == "assistant")


def _chars_written(item: Item) -> int:
    if item["type"] in ARGUMENTS_OF:
        return len(call_arguments(item))
    if item["type"] == "reasoning":
        return len(reasoning_text(item))
    if is_answer(item):
        return len(content_text_with_refusals(item["content"]))
    return 0
