"""Context: what the model is shown of the turns before."""

from collections.abc import Collection, Iterable
from typing import Any

from gateway_app.agent.types import Item
from responses_app.output import INTERRUPTED
from responses_app.tool_items import ARGUMENTS_OF, CALLS, OUTPUT_OF, OUTPUTS

OWN_LABEL = "hermes"  # as the server of the tools that are built in


def build_items(
    items: Iterable[Item], own_labels: Collection[str] = (OWN_LABEL,), pending: Collection[str] = ()
) -> list[Item]:
    """A conversation as models take it: each call with its output, but for those that are about to run.

    Items that only some upstreams understand are among them; each provider sends what its own does.
    """
    made = [part for index, item in enumerate(items) for part in _as_made(item, f"call_{index}", own_labels)]
    return [item for item in _calls_with_their_outputs(made) if not _is_closed_early(item, pending)]


def as_function_call(item: Item, call_id: str) -> Item:
    """A call that clients see as an ``mcp_call``, as the model made it."""
    label = item["server_label"]
    name = item["name"] if label == OWN_LABEL else f"{label}.{item['name']}"
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": item["arguments"]}


def _as_made(item: Item, call_id: str, own_labels: Collection[str]) -> list[Item]:
    if item["type"] != "mcp_call" or item.get("server_label") not in own_labels:
        return [item]
    call_id = item.get("id") or call_id
    call = as_function_call(item, call_id)
    if item.get("status") == "incomplete" and not item.get("error"):
        return [{**call, "status": "incomplete"}]
    told = _error_text(item["error"]) if item.get("error") else item.get("output") or ""
    return [call, {"type": "function_call_output", "call_id": call_id, "output": told}]


def _error_text(error: Any) -> str:
    content = error.get("content") if isinstance(error, dict) else None
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(error.get("message") or error) if isinstance(error, dict) else str(error)


def _is_closed_early(item: Item, pending: Collection[str]) -> bool:
    return item["type"] in OUTPUTS and item["call_id"] in pending


def _calls_with_their_outputs(items: list[Item]) -> list[Item]:
    """Each run of calls, then their outputs: upstreams refuse a call without one, or one without a call."""
    outputs = {item["call_id"]: item for item in items if item["type"] in OUTPUTS}
    paired: list[Item] = []
    waiting: list[Item] = []
    for item in items:
        if item["type"] in CALLS and item.get("status") != "incomplete":
            paired.append(item)
            waiting.append(outputs[item["call_id"]] if item["call_id"] in outputs else _closed(item))
            continue
        paired += waiting
        waiting = []
        if item["type"] in CALLS:
            paired.append(dropped_note(item))
        elif item["type"] not in OUTPUTS:
            paired.append(item)
    return paired + waiting


def _closed(call: Item) -> Item:
    """Of a call whose turn ended before its result was there."""
    return {"type": OUTPUT_OF[call["type"]], "call_id": call["call_id"], "output": INTERRUPTED}


def dropped_note(call: Item) -> Item:
    """What a call becomes that the model was cut off in: it must not look like one that was made."""
    size = len(call.get(ARGUMENTS_OF[call["type"]], ""))
    return as_note(
        f"Your call of {call['name']} was cut off after {size} characters of its arguments and was not carried out. "
        "If it is still needed, do it in smaller steps."
    )


def as_note(text: str) -> Item:
    """What the server tells the model, from the user: many upstreams take a system message only as the first."""
    return {"type": "message", "role": "user", "content": text}


def text_of(item: Item) -> str:
    """The plain text of a message or of a tool's output."""
    content: str | list[Item] | None = item.get("content") or item.get("output")
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content or ())
