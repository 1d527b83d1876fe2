"""A message in which the model was cut off, and the rest of it, as one message for the model.

Clients get the rest as an item of its own. The model wrote one text, and some chat templates refuse
two messages of the assistant in a row.
"""

from responses_app.protocol.items import Item, item_text


def with_rest(items: list[Item], rest: list[Item]) -> list[Item]:
    """The items, whose last one was cut off, followed by what came after the cut.

    Reasoning about how to go on is then before the whole message.
    """
    start = 0
    while start < len(rest) and rest[start]["type"] == "reasoning":
        start += 1
    if not items or start == len(rest) or not _can_join(items[-1], rest[start]):
        return items + rest
    whole = _joined([items[-1], rest[start]])
    return [*items[:-1], *rest[:start], whole, *rest[start + 1 :]]


def with_joined_end(items: list[Item]) -> list[Item]:
    """With the last message and the cut messages right before it as one."""
    start = len(items) - 1
    while start > 0 and _is_cut(items[start - 1]) and _can_join(items[start - 1], items[start]):
        start -= 1
    if start == len(items) - 1:
        return items
    return [*items[:start], _joined(items[start:])]


def _is_cut(item: Item) -> bool:
    return item.get("status") == "incomplete"


def _can_join(first: Item, second: Item) -> bool:
    if not _is_plain(first) or not _is_plain(second):
        return False
    return not second.get("phase") or second.get("phase") == first.get("phase")


def _is_plain(item: Item) -> bool:
    """A message of the model that has only text."""
    if item["type"] != "message" or item["role"] != "assistant":
        return False
    content = item["content"]
    return isinstance(content, str) or all("text" in part for part in content)


def _joined(messages: list[Item]) -> Item:
    text = "".join(item_text(message) for message in messages)
    joined: Item = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": text}],
    }
    if messages[0].get("phase"):
        joined["phase"] = messages[0]["phase"]
    if "provider_state" in messages[-1]:
        joined["provider_state"] = messages[-1]["provider_state"]
    if _is_cut(messages[-1]):
        joined["status"] = "incomplete"
    return joined
