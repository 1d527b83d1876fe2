"""Requests for approval in a conversation, as the calls that the model made."""

from collections.abc import Collection, Iterable, Mapping

from responses_app.protocol.items import (
    APPROVAL_REQUEST,
    APPROVAL_RESPONSE,
    Item,
    all_call_ids,
    request_id_of,
)

ALTERED = "Not carried out: the request for approval was altered after the client got it."
NOT_APPROVED = "Not carried out: the client has not approved this call."
DENIED_BY_CLIENT = "Denied: the client does not allow this call, and it was not carried out."
OWN_LABEL = "hermes"  # the server label of the built-in tools


def as_function_call(item: Item, call_id: str) -> Item:
    """A call that clients see as an item of MCP, as the model made it."""
    label = item["server_label"]
    name = item["name"]
    if label != OWN_LABEL:
        name = f"{label}.{name}"
    call: Item = {
        "type": "function_call",
        "call_id": call_id,
        "name": name,
        "arguments": item["arguments"],
    }
    if "provider_state" in item:
        call["provider_state"] = item["provider_state"]
    return call


def is_own_request(item: Item, own_labels: Collection[str]) -> bool:
    return item["type"] == APPROVAL_REQUEST and item.get("server_label") in own_labels


def carried_out(items: Iterable[Item]) -> set[str]:
    """The ids of requests whose calls have an item."""
    found: set[str] = set()
    for item in items:
        request_id = item.get("approval_request_id")
        if item["type"] == "mcp_call" and request_id:
            found.add(request_id)
    return found


def with_requested_calls(
    items: Iterable[Item],
    own_labels: Collection[str],
    pending: Collection[str],
    outputs: Mapping[str, str],
) -> list[Item]:
    """The conversation without requests and answers: with the calls and their outputs instead.

    Calls that are about to run come last, where their outputs follow.
    """
    items = list(items)
    shown = carried_out(items) | all_call_ids(items)
    requests = {request_id_of(item) for item in items if is_own_request(item, own_labels)}
    visible: list[Item] = []
    last: list[Item] = []
    for item in items:
        request_id = request_id_of(item)
        if item["type"] == APPROVAL_RESPONSE and request_id in requests:
            continue
        if not is_own_request(item, own_labels):
            visible.append(item)
            continue
        if request_id in shown:
            continue
        shown.add(request_id)  # a client may send the same request twice
        if request_id in pending:
            last.append(as_function_call(item, request_id))
        else:
            output = outputs.get(request_id, NOT_APPROVED)
            visible.append(as_function_call(item, request_id))
            visible.append(
                {"type": "function_call_output", "call_id": request_id, "output": output}
            )
    return visible + last
