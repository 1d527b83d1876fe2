"""Calls of the server's tools that a client sends back without their outputs.

Many clients drop the output of a call that they did not run themselves.
"""

from collections.abc import Iterable
from typing import cast

from responses_app.models import OPEN_CALLS, ToolEvent
from responses_app.protocol.ids import location_of_item
from responses_app.protocol.items import CALLS, OUTPUTS, Content, Item, output_ids
from responses_app.services.history.item_references import find_in_response


def has_bare_calls(items: Iterable[Item]) -> bool:
    """Are there calls without outputs?"""
    items = list(items)
    answered = output_ids(items)
    return any(_is_bare(item, answered) for item in items)


def with_outputs_of_ledger(owner_id: int, items: list[Item]) -> list[Item]:
    """The items, with the outputs that the server has of its own calls."""
    answered = output_ids(items)
    complete: list[Item] = []
    outputs: list[Item] = []  # of the calls right before
    for item in items:
        if item["type"] not in CALLS:
            complete += outputs
            outputs = []
        if not _is_bare(item, answered):
            complete.append(item)
        elif item["type"] == "mcp_call":
            complete.append(_completed(owner_id, item))
        else:
            complete.append(item)
            output = _output_of(owner_id, item)
            if output is not None:
                outputs.append(output)
    return complete + outputs


def _is_bare(item: Item, answered: set[str]) -> bool:
    if item.get("status") == "incomplete":
        return False
    if item["type"] == "mcp_call":
        return item.get("output") is None and not item.get("error")
    return item["type"] == "function_call" and item["call_id"] not in answered


def _output_of(owner_id: int, call: Item) -> Item | None:
    output = _found_output(owner_id, call)
    if output is None:
        return None
    return {
        "type": "function_call_output",
        "status": "completed",
        "call_id": call["call_id"],
        "output": output,
    }


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


def _completed(owner_id: int, call: Item) -> Item:
    location = location_of_item(call.get("id") or "")
    if location is None:
        return call
    stored = find_in_response(owner_id, location)
    if stored is None or stored["type"] != "mcp_call":
        return call
    if (stored["name"], stored["arguments"]) != (call["name"], call["arguments"]):
        return call
    filled = call.copy()
    filled["output"] = stored.get("output")
    filled["error"] = stored.get("error")
    return filled
