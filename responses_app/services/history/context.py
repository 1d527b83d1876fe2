"""What a model sees of the turns before, read from the newest back as far as needed."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from responses_app.protocol.items import MARK, Item
from responses_app.protocol.token_estimate import estimate_tokens
from responses_app.protocol.truncation import newest_that_fit
from responses_app.services.conversations import ConversationHistory
from responses_app.services.history.chain import ChainHistory
from responses_app.services.history.compaction import expand


class History(Protocol):
    def back(self) -> Iterator[list[Item]]:
        """Items in parts, the newest part first; inside a part, oldest first."""

    def compactions_back(self) -> Iterator[Item]:
        """Compactions before the last part that was read, newest first."""


@dataclass(frozen=True)
class Context:
    items: list[Item]
    is_cut: bool = False  # the oldest items did not fit


def history_of(conversation_id: str | None, previous_id: str | None) -> History:
    """A conversation is read from its own items: clients may have added and removed some."""
    if conversation_id is not None:
        return ConversationHistory(conversation_id)
    return ChainHistory(previous_id)


def read_context(owner_id: int, history: History, room: int | None = None) -> Context:
    """The older part of a conversation; ``room`` limits it to the newest turns of so many tokens.

    Nothing is read before a compaction that replaces all before it, nor before the part that no
    longer fits.
    """
    parts: list[list[Item]] = []
    tokens = 0
    batches = history.back()
    for batch in batches:
        expanded = expand(owner_id, batch)
        parts.append(expanded.items)
        tokens += estimate_tokens(expanded.items, None, [])
        if expanded.replaces_all:
            batches = iter(())
            break
        if room is not None and tokens > room:
            parts.append(_summaries_back(owner_id, history))
            break
    items: list[Item] = []
    for part in reversed(parts):
        items += part
    if room is None or tokens <= room:
        return Context(items)
    kept = newest_that_fit(items, room)
    return Context(kept, is_cut=len(kept) < len(items) or any(batches))


def _summaries_back(owner_id: int, history: History) -> list[Item]:
    """A summary stays, however old it is."""
    found: list[Item] = []
    for item in history.compactions_back():
        expanded = expand(owner_id, [item])
        found = [kept for kept in expanded.items if MARK in kept] + found
        if expanded.replaces_all:
            break
    return found


def count_context(owner_id: int, history: History) -> int:
    return estimate_tokens(read_context(owner_id, history).items, None, [])
