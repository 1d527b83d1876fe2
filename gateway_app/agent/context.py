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
    return _without_dangling_calls(items)


def _without_dangling_calls(items: list[Item]) -> list[Item]:
    answered = {item["call_id"] for item in items if item["type"] == "function_call_output"}
    return [item for item in items if item["type"] != "function_call" or item["call_id"] in answered]


def text_of(item: Item) -> str:
    """The plain text of a message or of a tool's output."""
    content: str | list[Item] | None = item.get("content") or item.get("output")
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content or ())
