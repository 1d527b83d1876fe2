"""Compaction items: sealed for their owner, and opened where a model reads the conversation."""

from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from responses_app.protocol.items import COMPACTION, CompactedContext, Item
from responses_app.sealing import NotSealedHere, is_sealed, seal, unseal


def seal_compaction(owner_id: int, context: CompactedContext) -> str:
    content = {"items": list(context.items), "replaces_all": context.replaces_all}
    return seal(owner_id, orjson.dumps(content))


def open_compaction(owner_id: int, encrypted_content: str) -> CompactedContext:
    """Raises NotSealedHere."""
    content = orjson.loads(unseal(owner_id, encrypted_content))
    return CompactedContext(content["items"], content["replaces_all"])


def is_foreign(item: Item) -> bool:
    """A compaction of another kind of server, which only an upstream can read."""
    return item["type"] == COMPACTION and not is_sealed(str(item.get("encrypted_content")))


@dataclass(frozen=True)
class Expanded:
    """A part of a conversation as a model sees it."""

    items: list[Item]
    replaces_all: bool = False  # a model sees nothing before this part


def expand(owner_id: int, items: Sequence[Item]) -> Expanded:
    """The items, with the compacted context instead of each compaction.

    A compaction that replaces all drops everything before it. One that can't be opened any more,
    as after an import from another server, is left out: the items that it replaces are still here.
    """
    visible: list[Item] = []
    replaces_all = False
    for item in items:
        if item["type"] != COMPACTION or is_foreign(item):
            visible.append(item)
            continue
        try:
            context = open_compaction(owner_id, item["encrypted_content"])
        except NotSealedHere:
            continue
        if context.replaces_all:
            visible = []
            replaces_all = True
        visible += context.items
    return Expanded(visible, replaces_all)
