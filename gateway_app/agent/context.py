"""Context: what the model is shown of the turns before."""

from collections.abc import Collection, Iterable
from typing import Any

from responses_app.protocol.closing import INTERRUPTED
from responses_app.protocol.items import (
    CALLS,
    OUTPUT_OF,
    OUTPUTS,
    Item,
    call_arguments,
    dangling_reasoning,
    is_from_model,
)

OWN_LABEL = "hermes"  # as the server of the tools that are built in


def build_items(
    items: Iterable[Item], own_labels: Collection[str] = (OWN_LABEL,), pending: Collection[str] = ()
) -> tuple[list[Item], tuple[Item, ...]]:
    """A conversation as models take it, and what they are told behind the outputs of the calls about to run.

    Items that only some upstreams understand are among them; each provider sends what its own does.
    """
    made = [
        part
        for index, item in enumerate(items)
        for part in _as_made(item, f"call_{index}", own_labels)
    ]
    pairing = _Pairing(made, pending)
    for item in made:
        pairing.add(item)
    pairing.end_run()
    return without_dangling_reasoning(pairing.shown), tuple(pairing.notes)


def as_function_call(item: Item, call_id: str) -> Item:
    """A call that clients see as an ``mcp_call``, as the model made it."""
    label = item["server_label"]
    name = item["name"] if label == OWN_LABEL else f"{label}.{item['name']}"
    return {
        "type": "function_call",
        "call_id": call_id,
        "name": name,
        "arguments": item["arguments"],
    }


def as_function_output(item: Item, call_id: str) -> Item:
    told = _error_text(item["error"]) if item.get("error") else item.get("output") or ""
    return {"type": "function_call_output", "call_id": call_id, "output": told}


def _as_made(item: Item, call_id: str, own_labels: Collection[str]) -> list[Item]:
    if item["type"] != "mcp_call" or item.get("server_label") not in own_labels:
        return [item]
    call_id = item.get("id") or call_id
    call = as_function_call(item, call_id)
    if item.get("status") == "incomplete" and not item.get("error"):
        return [{**call, "status": "incomplete"}]
    return [call, as_function_output(item, call_id)]


def _error_text(error: Any) -> str:
    content = error.get("content") if isinstance(error, dict) else None
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(error.get("message") or error) if isinstance(error, dict) else str(error)


class _Pairing:
    """Each run of calls with what was said beside them, then their outputs, then notes on calls that were cut off.

    Upstreams refuse a call without an output, one without a call, and anything in between.
    """

    def __init__(self, items: Iterable[Item], pending: Collection[str]) -> None:
        self.shown: list[Item] = []
        self.notes: list[Item] = []
        self._pending = pending
        self._outputs = {item["call_id"]: item for item in items if item["type"] in OUTPUTS}
        self._run: list[Item] = []
        self._is_answered = False  # some call of the run

    def add(self, item: Item) -> None:
        if item["type"] in OUTPUTS:
            self._is_answered |= item["call_id"] in {call["call_id"] for call in self._run}
            return
        if self._is_behind_run(item):
            self.end_run()
        if item["type"] not in CALLS:
            self.shown.append(item)
        elif item.get("status") != "incomplete":
            self.shown.append(item)
            self._run.append(item)
        else:
            self.notes.append(dropped_note(item))

    def _is_behind_run(self, item: Item) -> bool:
        if not self._run or not is_from_model(item):
            return True
        return self._is_answered and not self._is_pending()

    def _is_pending(self) -> bool:
        return any(call["call_id"] in self._pending for call in self._run)

    def end_run(self) -> None:
        """Behind outputs that are still to come, the notes are for the caller to add."""
        answered = [call for call in self._run if call["call_id"] not in self._pending]
        self.shown += [self._outputs.get(call["call_id"]) or _closed(call) for call in answered]
        if not self._is_pending():
            self.shown += self.notes
            self.notes = []
        self._run, self._is_answered = [], False


def without_dangling_reasoning(items: list[Item]) -> list[Item]:
    idle = dangling_reasoning(items)
    return [item for index, item in enumerate(items) if index not in idle]


def _closed(call: Item) -> Item:
    """Of a call whose turn ended before its result was there."""
    return {"type": OUTPUT_OF[call["type"]], "call_id": call["call_id"], "output": INTERRUPTED}


def dropped_note(call: Item) -> Item:
    """What a call becomes that the model was cut off in: it must not look like one that was made."""
    size = len(call_arguments(call))
    return as_note(
        f"Your call of {call['name']} was cut off after {size} characters of its arguments and was not carried out. "
        "If it is still needed, do it in smaller steps."
    )


def as_note(text: str) -> Item:
    """What the server tells the model, from the user: many upstreams take a system message only as the first."""
    return {"type": "message", "role": "user", "content": text}
