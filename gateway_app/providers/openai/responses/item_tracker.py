"""Which output item an event of a Responses stream is about, however the server names it."""

from dataclasses import dataclass
from typing import Any

from responses_app.protocol import events
from responses_app.protocol.items import Item

_ADDED = events.ITEM_ADDED
_DONE = events.ITEM_DONE


@dataclass(eq=False)
class OutputItem:
    """One output item of an answer, and how much of it was received."""

    kind: str
    given_call_id: str = ""
    call_id: str = ""  # ours, once the call has started
    received: int = 0  # characters, in deltas or at once
    is_announced: bool = False
    is_done: bool = False


class ItemTracker:
    """Some servers change an item's id from event to event: its call id comes first, then its index."""

    def __init__(self) -> None:
        self.items: list[OutputItem] = []
        self._by_index: dict[int, OutputItem] = {}
        self._by_id: dict[str, OutputItem] = {}

    def find(self, event: dict[str, Any], kind: str) -> OutputItem:
        """The item of this event, added if it is new."""
        given = event.get("item") or {}
        call_id = str(given.get("call_id") or event.get("call_id") or "")
        item_id = str(event.get("item_id") or given.get("id") or "")
        index = event.get("output_index")
        item = self._find_by_call_id(event, call_id)
        if item is None:
            item = self._find_other(event, kind, call_id, item_id)
        if item is None:
            item = OutputItem(kind)
            self.items.append(item)
        item.given_call_id = item.given_call_id or call_id
        if isinstance(index, int):
            self._by_index[index] = item
        if item_id:
            self._by_id[item_id] = item
        return item

    def is_known_call(self, given: Item) -> bool:
        return bool(self._with_call_id(str(given.get("call_id") or "")))

    def _with_call_id(self, call_id: str) -> list[OutputItem]:
        if not call_id:
            return []
        return [item for item in self.items if item.given_call_id == call_id]

    def _find_by_call_id(self, event: dict[str, Any], call_id: str) -> OutputItem | None:
        """A server may give two calls one id: each begins once and ends once, at its own index."""
        candidates = self._with_call_id(call_id)
        if not candidates:
            return None
        begins = event.get("type") == _ADDED
        ends = event.get("type") == _DONE
        index = event.get("output_index")
        if isinstance(index, int):
            at_index = self._by_index.get(index)
            if at_index in candidates and not (begins and at_index.is_done):
                return at_index
            if begins:
                candidates = [item for item in candidates if not item.is_announced]
        for item in candidates:
            if not item.is_done:
                return item
        if not candidates or (ends and isinstance(index, int)):
            return None
        return candidates[0]

    def _find_other(
        self, event: dict[str, Any], kind: str, call_id: str, item_id: str
    ) -> OutputItem | None:
        index = event.get("output_index")
        if isinstance(index, int):
            item = self._by_index.get(index)
            # A server may give every item the same index: another kind or call is another item.
            if item is None or item.kind != kind or (call_id and item.given_call_id):
                return None
            return item
        if item_id in self._by_id:
            return self._by_id[item_id]
        if event.get("type") == _ADDED:
            return None
        for item in reversed(self.items):
            if item.kind == kind and not item.is_done:
                return item
        return None
