"""Reasoning items: the raw text of the model as content, or a summary of it."""

from responses_app.protocol import events
from responses_app.protocol.events import Event
from responses_app.protocol.items import Item, content_text

RAW = "raw"
SUMMARY = "summary"
FORMS = (RAW, SUMMARY)


def reasoning_text(item: Item) -> str:
    """The text of a reasoning item in either form; the raw text where it has both."""
    return content_text(item.get("content")) or content_text(item.get("summary"))


def empty_reasoning(form: str) -> Item:
    item: Item = {"type": "reasoning", "summary": []}
    if form == RAW:
        item["content"] = []
    return item


def form_of(item: Item) -> str:
    """The form of an item that ``empty_reasoning`` began."""
    if "content" in item:
        return RAW
    return SUMMARY


def part_added(item: Item, index: int) -> Event:
    """Opens the only part of an item."""
    event: Event = {
        "type": events.SUMMARY_PART_ADDED,
        "item_id": item["id"],
        "output_index": index,
    }
    if form_of(item) == RAW:
        event["type"] = events.PART_ADDED
        event["content_index"] = 0
        event["part"] = {"type": "reasoning_text", "text": ""}
    else:
        event["summary_index"] = 0
        event["part"] = {"type": "summary_text", "text": ""}
    return event


def text_delta(item: Item, index: int, delta: str) -> Event:
    event: Event = {"type": events.SUMMARY_DELTA, "item_id": item["id"], "output_index": index}
    if form_of(item) == RAW:
        event["type"] = events.REASONING_DELTA
        event["content_index"] = 0
    else:
        event["summary_index"] = 0
    event["delta"] = delta
    return event
