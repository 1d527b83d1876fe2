"""Which output item an event of a Responses stream is about, however the server names it."""

from dataclasses import dataclass
from typing import Any


@dataclass(eq=False)
class Place:
    """One output item of an answer, and how much of it came."""

    kind: str
    given_call_id: str = ""
    call_id: str = ""  # as we call it, once it has started
    received: int = 0  # characters, however they came
    is_announced: bool = False
    is_done: bool = False


class Places:
    """Some servers change an item's id from event to event: its call id counts more, then its index."""

    def __init__(self) -> None:
        self.all: list[Place] = []
        self._by_index: dict[int, Place] = {}
        self._by_id: dict[str, Place] = {}

    def find(self, event: dict[str, Any], kind: str) -> Place:
        item = event.get("item") or {}
        call_id = str(item.get("call_id") or event.get("call_id") or "")
        item_id = str(event.get("item_id") or item.get("id") or "")
        index = event.get("output_index")
        place = self._of_call(event, call_id) or self._known(event, kind, call_id, item_id)
        if place is None:
            place = Place(kind)
            self.all.append(place)
        place.given_call_id = place.given_call_id or call_id
        if isinstance(index, int):
            self._by_index[index] = place
        if item_id:
            self._by_id[item_id] = place
        return place

    def is_known_call(self, item: dict[str, Any]) -> bool:
        return bool(self._with_call_id(str(item.get("call_id") or "")))

    def _with_call_id(self, call_id: str) -> list[Place]:
        return [place for place in self.all if place.given_call_id == call_id] if call_id else []

    def _of_call(self, event: dict[str, Any], call_id: str) -> Place | None:
        """By its call id. A server may give two calls the same: each begins once and ends once, at its own index."""
        same, index, kind = (
            self._with_call_id(call_id),
            event.get("output_index"),
            event.get("type"),
        )
        at_index = self._by_index.get(index) if isinstance(index, int) else None
        begins, ends = kind == "response.output_item.added", kind == "response.output_item.done"
        if at_index is not None and at_index in same and not (begins and at_index.is_done):
            return at_index
        if isinstance(index, int):
            same = [
                place
                for place in same
                if not (begins and place.is_announced) and not (ends and place.is_done)
            ]
        return next((place for place in same if not place.is_done), same[0] if same else None)

    def _known(self, event: dict[str, Any], kind: str, call_id: str, item_id: str) -> Place | None:
        index = event.get("output_index")
        if isinstance(index, int):
            place = self._by_index.get(index)
            # A server may give everything the same index: another kind or another call is another item.
            is_it = (
                place is not None and place.kind == kind and not (call_id and place.given_call_id)
            )
            return place if is_it else None
        if item_id in self._by_id:
            return self._by_id[item_id]
        if event.get("type") == "response.output_item.added":
            return None
        return next(
            (place for place in reversed(self.all) if place.kind == kind and not place.is_done),
            None,
        )
