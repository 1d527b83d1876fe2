"""Reasoning items, and what they led to."""

from collections.abc import Sequence

from responses_app.protocol.items import OUTPUTS
from responses_app.protocol.snapshot import Item


def is_from_model(item: Item) -> bool:
    return item["type"] not in OUTPUTS and item.get("role", "assistant") == "assistant"


def idle_thoughts(items: Sequence[Item]) -> set[int]:
    """Which of these are reasoning that led to no words and no call: upstreams refuse it without either."""
    found: set[int] = set()
    leads_on = False
    for index in reversed(range(len(items))):
        if items[index]["type"] != "reasoning":
            leads_on = is_from_model(items[index])
        elif not leads_on:
            found.add(index)
    return found
