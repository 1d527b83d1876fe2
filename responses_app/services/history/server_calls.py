"""Calls of the server's tools that a client sends back without their outputs.

Many clients drop the output of a call that they did not run themselves.
"""

from collections.abc import Iterable
from typing import cast

from responses_app.models import OPEN_CALLS, Response, ToolEvent
from responses_app.protocol.ids import location_of_item
from responses_app.protocol.items import CALLS, OUTPUTS, Content, Item, output_ids
from responses_app.services.chunks import in_chunks
from responses_app.services.history.item_references import find_in_response


def has_bare_calls(items: Iterable[Item]) -> bool:
    """Are there calls without outputs?"""
    items = list(items)
    answered = output_ids(items)
    return any(_is_bare(item, answered) for item in items)


def with_outputs_of_ledger(owner_id: int, items: list[Item]) -> list[Item]:
    """The items, with the outputs that the server has of its own calls."""
    answered = output_ids(items)
    known = _KnownCalls(owner_id, [item for item in items if _is_bare(item, answered)])
    complete: list[Item] = []
    outputs: list[Item] = []  # of the calls right before
    for item in items:
        if item["type"] not in CALLS:
            complete += outputs
            outputs = []
        if not _is_bare(item, answered):
            complete.append(item)
        elif item["type"] == "mcp_call":
            complete.append(known.completed(item))
        else:
            complete.append(item)
            output = known.output_of(item)
            if output is not None:
                outputs.append(output)
    return complete + outputs


def _is_bare(item: Item, answered: set[str]) -> bool:
    if item.get("status") == "incomplete":
        return False
    if item["type"] == "mcp_call":
        return item.get("output") is None and not item.get("error")
    return item["type"] == "function_call" and item["call_id"] not in answered


class _KnownCalls:
    """Which of these calls the server has made; a client may send thousands that it has not."""

    def __init__(self, owner_id: int, bare: list[Item]) -> None:
        self._owner_id = owner_id
        self._call_ids: set[str] = set()
        self._responses: set[str] = set()
        self._outputs: dict[tuple[str, str, str], Content | None] = {}
        self._items: dict[str, Item | None] = {}
        for chunk in in_chunks({item.get("call_id") or "" for item in bare}):
            events = ToolEvent.objects.filter(call_id__in=chunk, response__owner_id=owner_id)
            self._call_ids |= set(events.values_list("call_id", flat=True))
        locations = [location_of_item(item.get("id") or "") for item in bare]
        for chunk in in_chunks({found.response_id for found in locations if found is not None}):
            rows = Response.objects.visible_to(owner_id).filter(pk__in=chunk)
            self._responses |= set(rows.values_list("pk", flat=True))

    def output_of(self, call: Item) -> Item | None:
        if call["call_id"] not in self._call_ids:
            return None
        key = (call["call_id"], call["name"], call["arguments"])
        if key not in self._outputs:
            self._outputs[key] = _found_output(self._owner_id, call)
        output = self._outputs[key]
        if output is None:
            return None
        return {
            "type": "function_call_output",
            "status": "completed",
            "call_id": call["call_id"],
            "output": output,
        }

    def completed(self, call: Item) -> Item:
        """A call that was altered gets no output."""
        stored = self._stored(call.get("id") or "")
        if stored is None or stored["type"] != "mcp_call":
            return call
        if (stored["name"], stored["arguments"]) != (call["name"], call["arguments"]):
            return call
        filled = call.copy()
        filled["output"] = stored.get("output")
        filled["error"] = stored.get("error")
        return filled

    def _stored(self, item_id: str) -> Item | None:
        location = location_of_item(item_id)
        if location is None or location.response_id not in self._responses:
            return None
        if item_id not in self._items:
            self._items[item_id] = find_in_response(self._owner_id, location)
        return self._items[item_id]


def _found_output(owner_id: int, call: Item) -> Content | None:
    """The newest call with this id and the same content: some models count ids anew each time."""
    events = ToolEvent.objects.filter(
        call_id=call["call_id"],
        name=call["name"],
        arguments=call["arguments"],
        response__owner_id=owner_id,
        response__deleted_at__isnull=True,
    ).exclude(status__in=OPEN_CALLS)
    event = events.select_related("response").order_by("-pk").first()
    if event is None:
        return None
    for item in event.response.output or []:
        # As the client saw it: the ledger has all of a long output.
        if item["type"] in OUTPUTS and item["call_id"] == call["call_id"]:
            return cast(Content, item["output"])
    return event.output
