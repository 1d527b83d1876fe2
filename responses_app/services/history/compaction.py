"""Compaction items: sealed for their owner, and opened where a conversation is shown to a model."""

from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from responses_app.protocol.items import COMPACTION, CompactedContext, Item
from responses_app.sealing import NotSealedHere, is_sealed, seal, unseal


def seal_compaction(owner_id: int, standing: CompactedContext) -> str:
    return seal(
        owner_id,
        orjson.dumps({"items": list(standing.items), "replaces_all": standing.replaces_all}),
    )


def open_compaction(owner_id: int, encrypted_content: str) -> CompactedContext:
    """Raises NotSealedHere."""
    return CompactedContext(**orjson.loads(unseal(owner_id, encrypted_content)))


def is_foreign(item: Item) -> bool:
    """A compaction of another kind of server: only an upstream can tell what it stands for."""
    return item["type"] == COMPACTION and not is_sealed(str(item.get("encrypted_content")))


@dataclass(frozen=True)
class Expanded:
    """A part of a conversation as a model is shown it."""

    items: list[Item]
    replaces_all: bool = False  # nothing before this part is shown


def expand(owner_id: int, items: Sequence[Item]) -> Expanded:
    """The items with what their compactions stand for.

    Nothing is left of what is before a compaction that stands for all before it. One that can't be
    opened any more, as after an import from another server, is left out: what it stood for is
    still there.
    """
    shown: list[Item] = []
    replaces_all = False
    for item in items:
        if item["type"] != COMPACTION or is_foreign(item):
            shown.append(item)
            continue
        standing = _opened(owner_id, item)
        if standing.replaces_all:
            shown, replaces_all = [], True
        shown += standing.items
    return Expanded(shown, replaces_all)


def _opened(owner_id: int, item: Item) -> CompactedContext:
    try:
        return open_compaction(owner_id, item["encrypted_content"])
    except NotSealedHere:
        return CompactedContext()
