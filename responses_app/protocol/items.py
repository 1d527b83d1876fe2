"""Items: their types, which output answers which call, and what marks a compaction."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from responses_app.protocol import events

Item = dict[str, Any]

# -- tool calls -------------------------------------------------------------------------
OUTPUT_OF = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output"}
CALLS = frozenset(OUTPUT_OF)
OUTPUTS = frozenset(OUTPUT_OF.values())
# Where each kind of call keeps what the model wrote, and the events that carry it.
ARGUMENTS_OF = {"function_call": "arguments", "custom_tool_call": "input", "mcp_call": "arguments"}
ARGUMENTS_DELTA_OF = {
    "function_call": events.ARGUMENTS_DELTA,
    "custom_tool_call": events.CUSTOM_INPUT_DELTA,
    "mcp_call": events.MCP_ARGUMENTS_DELTA,
}
ARGUMENTS_DONE_OF = {
    "function_call": events.ARGUMENTS_DONE,
    "custom_tool_call": events.CUSTOM_INPUT_DONE,
    "mcp_call": events.MCP_ARGUMENTS_DONE,
}

# -- compactions ------------------------------------------------------------------------
COMPACTION = "compaction"
# The key, on an item that came out of a compaction, of what it is there. No model sees it.
MARK = "compacted"
SUMMARY, KEPT = "summary", "kept"


@dataclass(frozen=True)
class CompactedContext:
    """The items that a model sees instead of a compaction item; none of an unfinished one."""

    items: Sequence[Item] = ()
    replaces_all: bool = False  # nothing before the compaction item is visible to the model


def all_call_ids(items: Iterable[Item]) -> set[str]:
    return {item["call_id"] for item in items if item["type"] in CALLS}


def call_ids(items: Iterable[Item]) -> set[str]:
    """Of the calls that can be answered: not of those in which the model was cut off."""
    found: set[str] = set()
    for item in items:
        if item["type"] in CALLS and item.get("status") != "incomplete":
            found.add(item["call_id"])
    return found


def output_ids(items: Iterable[Item]) -> set[str]:
    return {item["call_id"] for item in items if item["type"] in OUTPUTS}


def is_from_model(item: Item) -> bool:
    return item["type"] not in OUTPUTS and item.get("role", "assistant") == "assistant"


def dangling_reasoning(items: Sequence[Item]) -> set[int]:
    """The indexes of reasoning that no message and no call follows: upstreams refuse it."""
    found: set[int] = set()
    leads_on = False
    for index in reversed(range(len(items))):
        if items[index]["type"] != "reasoning":
            leads_on = is_from_model(items[index])
        elif not leads_on:
            found.add(index)
    return found
