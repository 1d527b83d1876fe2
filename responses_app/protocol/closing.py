"""How an item ends: the events that close what is open inside it."""

from typing import Any

from responses_app.protocol import events
from responses_app.protocol.events import Event
from responses_app.protocol.items import ARGUMENTS_DONE_OF, ARGUMENTS_OF, Item


def closing_events(item: Item) -> list[Event]:
    """Without the item's own end; each lacks the place, which the caller knows."""
    closers = _CLOSERS.get(item["type"])
    return [] if closers is None else closers(item)


def mcp_error(text: str) -> dict[str, Any]:
    """As OpenAI's clients read the error of an ``mcp_call``."""
    return {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": text}]}


def _message_closers(item: Item) -> list[Event]:
    closers: list[Event] = []
    for index, part in enumerate(item["content"]):
        if part["type"] == "refusal":
            done = {
                "type": events.REFUSAL_DONE,
                "content_index": index,
                "refusal": part["refusal"],
            }
        elif "text" not in part:
            continue  # an image or a file of the user, which was never open
        else:
            told = {"text": part["text"], "logprobs": part.get("logprobs") or []}
            done = {"type": events.TEXT_DONE, "content_index": index, **told}
        closers += [
            done,
            {"type": events.PART_DONE, "content_index": index, "part": dict(part)},
        ]
    return closers


def _reasoning_closers(item: Item) -> list[Event]:
    closers: list[Event] = []
    for index, part in enumerate(item["summary"]):
        closers += [
            {
                "type": events.SUMMARY_DONE,
                "summary_index": index,
                "text": part["text"],
            },
            {
                "type": events.SUMMARY_PART_DONE,
                "summary_index": index,
                "part": dict(part),
            },
        ]
    return closers


def _call_closers(item: Item) -> list[Event]:
    kind = item["type"]
    named = {"name": item["name"]} if kind == "function_call" else {}
    return [
        {
            "type": ARGUMENTS_DONE_OF[kind],
            **named,
            ARGUMENTS_OF[kind]: item[ARGUMENTS_OF[kind]],
        }
    ]


_CLOSERS = {
    "message": _message_closers,
    "reasoning": _reasoning_closers,
    "function_call": _call_closers,
    "custom_tool_call": _call_closers,
    "mcp_call": _call_closers,
}
