"""Context: what the model is shown of the turns before."""

from collections.abc import Iterable

from gateway_app.agent.types import Item


def build_items(turns: Iterable[tuple[list[Item], list[Item]]], new_input: list[Item]) -> list[Item]:
    """Input and output of each turn in order, then the new input, without dangling tool calls.

    Items that only some upstreams understand are among them; each provider sends what its own does.
    """
    items: list[Item] = []
    for turn_input, turn_output in turns:
        items += turn_input
        items += turn_output
    items += new_input
    return _calls_with_their_outputs(items)


def _calls_with_their_outputs(items: list[Item]) -> list[Item]:
    """Each run of calls, then their outputs; what has no partner is left out, for upstreams refuse it."""
    called = {item["call_id"] for item in items if item["type"] == "function_call"}
    outputs = {
        item["call_id"]: item for item in items if item["type"] == "function_call_output" and item["call_id"] in called
    }
    paired: list[Item] = []
    waiting: list[Item] = []
    for item in items:
        if item["type"] == "function_call":
            if item["call_id"] in outputs:
                paired.append(item)
                waiting.append(outputs.pop(item["call_id"]))
        elif item["type"] != "function_call_output":
            paired += [*waiting, item]
            waiting = []
        elif waiting:
            paired += waiting
            waiting = []
    return paired + waiting


def text_of(item: Item) -> str:
    """The plain text of a message or of a tool's output."""
    content: str | list[Item] | None = item.get("content") or item.get("output")
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content or ())
