"""Files of a conversation as text, for models that take no files, and for summaries."""

from gateway_app.agent.events import ModelFailed
from gateway_app.documents.extraction import Unreadable
from gateway_app.documents.files import file_bytes, file_text, plain_text
from responses_app.protocol.items import OUTPUTS, ContentPart, Item

FILE = "input_file"


def parts_field(item: Item) -> str:
    if item.get("type") in OUTPUTS:
        return "output"
    return "content"


def with_parts(item: Item, parts: list[ContentPart]) -> Item:
    changed = item.copy()
    if parts_field(item) == "output":
        changed["output"] = parts
    else:
        changed["content"] = parts
    return changed


def newest_message(items: list[Item]) -> int:
    """The position of the user's last message."""
    for index in range(len(items) - 1, -1, -1):
        if items[index].get("role") == "user":
            return index
    return 0


async def as_text(part: ContentPart, *, takes_files: bool, is_new: bool) -> ContentPart:
    """A part with a file as the model's server takes it: text files are always sent as their text.

    A file that can't be read fails the turn that brings it, and no turn after that.
    """
    name = part.get("filename") or "file"
    try:
        if takes_files and plain_text(file_bytes(part["file_data"])) is None:
            return part
        return {"type": "input_text", "text": await file_text(name, part["file_data"])}
    except Unreadable as error:
        problem = f"The file {name!r} can't be read: {error}."
        if is_new:
            raise ModelFailed(problem, "invalid_prompt") from None
        return {"type": "input_text", "text": f"[{problem}]"}
