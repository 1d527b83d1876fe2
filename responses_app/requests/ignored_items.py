"""Fields inside input items that nothing here acts on."""

from collections.abc import Iterator, Sequence
from typing import Any, cast

from responses_app.protocol.items import ADDITIONAL_TOOLS, CALLS, OUTPUTS, Item
from responses_app.requests.content import BREAKPOINT
from responses_app.requests.items import CALL_CONTEXT, OUTPUT_CONTEXT
from responses_app.requests.tools import hosted_tool_names


def ignored_in_items(items: Sequence[Item], name: str) -> list[str]:
    """Kept with their items, and passed on to upstreams of the Responses API."""
    ignored: list[str] = []
    for index, item in enumerate(items):
        ignored += _ignored_in(item, f"{name}[{index}]")
    return ignored


def _ignored_in(item: Item, name: str) -> Iterator[str]:
    kind = item["type"]
    if kind == "message":
        yield from _breakpoints(item["content"], f"{name}.content")
    elif kind in CALLS:
        yield from _given(item, CALL_CONTEXT, name)
    elif kind in OUTPUTS:
        yield from _given(item, OUTPUT_CONTEXT, name)
        yield from _breakpoints(item["output"], f"{name}.output")
    elif kind == ADDITIONAL_TOOLS:
        yield from hosted_tool_names(item["tools"], f"{name}.tools")


def _given(item: Item, names: tuple[str, ...], path: str) -> list[str]:
    given = cast(dict[str, Any], item)
    return [f"{path}.{name}" for name in names if name in given]


def _breakpoints(content: Any, path: str) -> Iterator[str]:
    if not isinstance(content, list):
        return
    for index, part in enumerate(content):
        if BREAKPOINT in part:
            yield f"{path}[{index}].{BREAKPOINT}"
