"""How an item ends: the events that close what is open inside it."""

from typing import Any

from responses_app.protocol import events
from responses_app.protocol.events import Event
from responses_app.protocol.items import ContentPart, Item

INTERRUPTED = "Interrupted: whether this call took effect is not known. Check before you repeat it."


def closing_events(item: Item, index: int) -> list[Event]:
    """All but the item's own end."""
    match item["type"]:
        case "message":
            return _close_message(item, index)
        case "reasoning":
            return _close_reasoning(item, index)
        case "function_call" | "custom_tool_call" | "mcp_call":
            return [_close_arguments(item, index)]
    return []


def mcp_error(text: str) -> dict[str, Any]:
    """As OpenAI's clients read the error of an ``mcp_call``."""
    return {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": text}]}


def _close_message(item: Item, index: int) -> list[Event]:
    closing: list[Event] = []
    content = item["content"]
    assert not isinstance(content, str)  # the server's own messages have parts
    for content_index, part in enumerate(content):
        done: Event = {
            "type": events.TEXT_DONE,
            "item_id": item["id"],
            "output_index": index,
            "content_index": content_index,
        }
        if part["type"] == "refusal":
            done["type"] = events.REFUSAL_DONE
            done["refusal"] = part["refusal"]
        elif "text" in part:
            done["text"] = part["text"]
            done["logprobs"] = part.get("logprobs") or []
        else:
            continue  # an image or a file of the user, which was never open
        closing.append(done)
        closing.append(_part_done(item, index, content_index, part))
    return closing


def _part_done(item: Item, index: int, content_index: int, part: ContentPart) -> Event:
    return {
        "type": events.PART_DONE,
        "item_id": item["id"],
        "output_index": index,
        "content_index": content_index,
        "part": part.copy(),
    }


def _close_reasoning(item: Item, index: int) -> list[Event]:
    closing: list[Event] = []
    content = item.get("content") or []
    assert not isinstance(content, str)  # the server's own reasoning has parts
    for content_index, part in enumerate(content):
        closing.append(
            {
                "type": events.REASONING_DONE,
                "item_id": item["id"],
                "output_index": index,
                "content_index": content_index,
                "text": part["text"],
            }
        )
        closing.append(_part_done(item, index, content_index, part))
    for summary_index, part in enumerate(item["summary"]):
        closing.append(
            {
                "type": events.SUMMARY_DONE,
                "item_id": item["id"],
                "output_index": index,
                "summary_index": summary_index,
                "text": part["text"],
            }
        )
        closing.append(
            {
                "type": events.SUMMARY_PART_DONE,
                "item_id": item["id"],
                "output_index": index,
                "summary_index": summary_index,
                "part": part.copy(),
            }
        )
    return closing


def _close_arguments(item: Item, index: int) -> Event:
    done: Event = {"type": events.ARGUMENTS_DONE, "item_id": item["id"], "output_index": index}
    match item["type"]:
        case "function_call":
            done["name"] = item["name"]
            done["arguments"] = item["arguments"]
        case "mcp_call":
            done["type"] = events.MCP_ARGUMENTS_DONE
            done["arguments"] = item["arguments"]
        case _:
            done["type"] = events.CUSTOM_INPUT_DONE
            done["input"] = item["input"]
    return done
