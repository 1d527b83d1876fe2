"""The order of messages that strict chat templates demand, for both protocols."""

from collections.abc import Sequence

from gateway_app.agent.context import is_note
from responses_app.protocol.items import OUTPUTS, Content, ContentPart, Item, item_text

SYSTEM_ROLES = ("system", "developer")
SEPARATOR = "\n\n"


def with_one_system_message(
    instructions: str | None, items: Sequence[Item]
) -> tuple[str | None, list[Item]]:
    """The instructions, followed by the texts of all system and developer items; the other items.

    Many templates raise at a second system message, and at one behind other messages. No system
    message can have an image: it stays where it is, as the user's.
    """
    texts: list[str] = []
    if instructions:
        texts.append(instructions)
    others: list[Item] = []
    for item in items:
        if not _is_message(item, SYSTEM_ROLES):
            others.append(item)
            continue
        text = item_text(item)
        if text:
            texts.append(text)
        images = [part for part in _parts(item["content"]) if "text" not in part]
        if images:
            others.append({"type": "message", "role": "user", "content": images})
    return SEPARATOR.join(texts) or None, others


def with_placed_notes(items: Sequence[Item]) -> list[Item]:
    """The server's notes as a part of the tool output or the user's message beside them.

    Templates raise at two user messages in a row, some also at a user message behind a tool's.
    """
    placed: list[Item] = []
    for item in items:
        if placed and _takes_note(placed[-1], item):
            placed[-1] = _with_note(placed[-1], item)
        elif placed and is_note(placed[-1]) and _is_message(item, ("user",)):
            placed[-1] = _merged(placed[-1], item)
        else:
            placed.append(item)
    return placed


def with_joined_cuts(items: Sequence[Item]) -> list[Item]:
    """A message that was cut off, and the message that continues it, as one."""
    joined: list[Item] = []
    for item in items:
        if joined and _is_cut(joined[-1]) and _is_message(item, ("assistant",)):
            text = item_text(joined[-1]) + item_text(item)
            joined[-1] = item | {"content": text}
        else:
            joined.append(item)
    return joined


def _takes_note(item: Item, note: Item) -> bool:
    if not is_note(note):
        return False
    return item["type"] in OUTPUTS or _is_message(item, ("user",))


def _with_note(item: Item, note: Item) -> Item:
    if item["type"] not in OUTPUTS:
        return _merged(item, note)
    text = f"[{item_text(note)}]"
    noted = item.copy()
    noted["output"] = _joined(item.get("output") or "", text)
    return noted


def _merged(first: Item, second: Item) -> Item:
    content = _joined(first["content"], second["content"])
    return {"type": "message", "role": "user", "content": content}


def _joined(first: Content, second: Content) -> Content:
    if isinstance(first, str) and isinstance(second, str):
        return SEPARATOR.join(filter(None, (first, second)))
    return [*_parts(first), *_parts(second)]


def _parts(content: Content) -> list[ContentPart]:
    if not isinstance(content, str):
        return content
    return [{"type": "input_text", "text": content}]


def _is_message(item: Item, roles: tuple[str, ...]) -> bool:
    return item.get("type", "message") == "message" and item["role"] in roles


def _is_cut(item: Item) -> bool:
    return _is_message(item, ("assistant",)) and item.get("status") == "incomplete"
