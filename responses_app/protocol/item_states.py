"""Provider state: what a model's server needs back with an item, kept beside the output."""

from collections.abc import Iterable
from typing import Any, TypedDict

from responses_app.protocol.events import ITEM_STATE, Event
from responses_app.protocol.items import Item, ProviderState


class StoredState(TypedDict):
    """The state of one output item, as the row of its response has it."""

    output_index: int
    provider: str
    state: dict[str, Any]


class ItemStates:
    """The states in a log, folded event by event."""

    def __init__(self) -> None:
        self._by_index: dict[int, ProviderState] = {}
        self._by_call_id: dict[str, ProviderState] = {}  # of calls that the output hides

    def apply(self, event: Event) -> None:
        """A later state of the same provider adds to the earlier one."""
        index = event["output_index"]
        if index is None:
            earlier = self._by_call_id.get(event["call_id"])
            self._by_call_id[event["call_id"]] = _merged(earlier, event)
        else:
            self._by_index[index] = _merged(self._by_index.get(index), event)

    def of_hidden_call(self, call_id: str) -> ProviderState | None:
        return self._by_call_id.get(call_id)

    def stored(self) -> list[StoredState] | None:
        """For the row; None if no item has a state."""
        stored: list[StoredState] = []
        for index, found in sorted(self._by_index.items()):
            stored.append(
                {"output_index": index, "provider": found["provider"], "state": found["state"]}
            )
        return stored or None


def states_in(log: Iterable[Event]) -> list[StoredState] | None:
    states = ItemStates()
    for event in log:
        if event["type"] == ITEM_STATE:
            states.apply(event)
    return states.stored()


def with_states(output: list[Item], stored: list[StoredState] | None) -> list[Item]:
    """The output for a provider: items with a state are copies that carry it."""
    if not stored:
        return output
    items = list(output)
    for found in stored:
        index = found["output_index"]
        if index < len(items):
            item = items[index].copy()
            item["provider_state"] = {"provider": found["provider"], "state": found["state"]}
            items[index] = item
    return items


def _merged(earlier: ProviderState | None, event: Event) -> ProviderState:
    state = event["state"]
    if earlier is not None and earlier["provider"] == event["provider"]:
        state = earlier["state"] | state
    return {"provider": event["provider"], "state": state}
