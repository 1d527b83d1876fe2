"""The items of tool calls: which kind answers which, and where each keeps what the model wrote."""

from collections.abc import Iterable

from responses_app.protocol.snapshot import Item

OUTPUT_OF = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output"}
CALLS = frozenset(OUTPUT_OF)
OUTPUTS = frozenset(OUTPUT_OF.values())
ARGUMENTS_OF = {"function_call": "arguments", "custom_tool_call": "input", "mcp_call": "arguments"}

ARGUMENTS_EVENT = {
    "function_call": "response.function_call_arguments",
    "custom_tool_call": "response.custom_tool_call_input",
    "mcp_call": "response.mcp_call_arguments",
}


def all_call_ids(items: Iterable[Item]) -> set[str]:
    return {item["call_id"] for item in items if item["type"] in CALLS}


def call_ids(items: Iterable[Item]) -> set[str]:
    """Of the calls that can be answered: not of those the model was cut off in."""
    return {
        item["call_id"]
        for item in items
        if item["type"] in CALLS and item.get("status") != "incomplete"
    }


def output_ids(items: Iterable[Item]) -> set[str]:
    return {item["call_id"] for item in items if item["type"] in OUTPUTS}
