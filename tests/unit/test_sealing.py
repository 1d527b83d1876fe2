"""Sealed content opens for its owner, on a server with its secret, and unaltered."""

from typing import Any

import pytest

from responses_app.protocol.items import CompactedContext, Item
from responses_app.sealing import PREFIX, NotSealedHere, seal, unseal
from responses_app.services.history.compaction import (
    Expanded,
    expand,
    open_compaction,
    seal_compaction,
)

KEPT_ITEMS: list[Item] = [{"type": "message", "role": "user", "content": "hello"}]


def compaction(owner_id: int, *items: Item, replaces_all: bool) -> Item:
    return {"type": "compaction", "encrypted_content": seal_compaction(owner_id, CompactedContext(items, replaces_all))}


def test_what_is_sealed_opens_and_says_nothing() -> None:
    sealed = seal(7, b"tangerine")
    assert sealed.startswith(PREFIX)
    assert "tangerine" not in sealed
    assert unseal(7, sealed) == b"tangerine"
    assert sealed != seal(7, b"tangerine")


def test_every_change_of_a_character_is_noticed() -> None:
    sealed = seal(7, b"x")
    for place, character in enumerate(sealed):
        for other in ("A", "B", "=", "+", " "):
            if other != character:
                with pytest.raises(NotSealedHere):
                    unseal(7, sealed[:place] + other + sealed[place + 1 :])
        with pytest.raises(NotSealedHere):
            unseal(7, sealed[:place])


def test_another_owner_or_secret_opens_nothing_and_an_older_secret_may(settings: Any) -> None:
    sealed = seal(7, b"x")
    with pytest.raises(NotSealedHere):
        unseal(8, sealed)
    settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another"
    assert unseal(7, sealed) == b"x"
    settings.SECRET_KEY_FALLBACKS = []
    with pytest.raises(NotSealedHere):
        unseal(7, sealed)


def test_a_context_begins_at_the_newest_that_stands_for_all() -> None:
    whole, beside = compaction(7, *KEPT_ITEMS, replaces_all=True), compaction(7, *KEPT_ITEMS, replaces_all=False)
    assert open_compaction(7, whole["encrypted_content"]) == CompactedContext(KEPT_ITEMS, replaces_all=True)
    note: Item = {"type": "message", "role": "user", "content": "other"}
    assert expand(7, [note, beside]) == Expanded([note, *KEPT_ITEMS])
    assert expand(7, [note, beside, whole, note]) == Expanded([*KEPT_ITEMS, note], replaces_all=True)


def test_what_cannot_be_opened_any_more_leaves_the_history_as_it_is() -> None:
    foreign: list[Item] = [{"type": "compaction", "encrypted_content": "of an upstream"}, {"type": "compaction"}]
    assert expand(7, [*KEPT_ITEMS, compaction(8, replaces_all=True), *foreign]) == Expanded([*KEPT_ITEMS, *foreign])
