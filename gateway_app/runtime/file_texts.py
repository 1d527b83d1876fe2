"""Files of a turn as text, before anything is decided by the size of the conversation."""

import asyncio
from dataclasses import replace

from asgiref.sync import async_to_sync

from gateway_app.agent.model_call import ModelCall
from gateway_app.documents.readers import current_owner
from gateway_app.providers.file_parts import FILE, as_text, newest_message, parts_field, with_parts
from gateway_app.runtime.agents import agent_of
from responses_app.protocol.items import ContentPart, Item

MAX_COUNT_SECS = 60  # then a count goes by the pages of the files
NO_FILES = "no files"  # the deviation of a model's server that takes none


async def call_with_file_texts(
    call: ModelCall, *, takes_files: bool
) -> tuple[ModelCall, tuple[str, ...]]:
    """The call as it is sent to that server, and the deviation if it has files."""
    if not any(map(_has_files, call.items)):
        return call, ()
    newest = newest_message(call.items)
    items = await _with_texts(call.items, newest, takes_files=takes_files)
    if takes_files:
        return replace(call, items=items), ()
    return replace(call, items=items), (NO_FILES,)


async def with_file_texts(items: list[Item]) -> list[Item]:
    """For a summary: no file of these is new."""
    return await _with_texts(items, len(items), takes_files=False)


def readable_items(model: str, owner_id: int, items: list[Item]) -> list[Item]:
    """Items as the model's server gets them, for the count of a request that is not made."""
    if not any(map(_has_files, items)):
        return items
    takes_files = agent_of(model).takes_files()
    return async_to_sync(_counted_items)(owner_id, items, takes_files=takes_files)


async def _counted_items(owner_id: int, items: list[Item], *, takes_files: bool) -> list[Item]:
    current_owner.set(owner_id)
    try:
        async with asyncio.timeout(MAX_COUNT_SECS):
            return await _with_texts(items, len(items), takes_files=takes_files)
    except TimeoutError:  # the files of the owner wait for each other
        return items


async def _with_texts(items: list[Item], newest: int, *, takes_files: bool) -> list[Item]:
    """Those from ``newest`` on are new."""
    found: list[Item] = []
    for index, item in enumerate(items):
        if not _has_files(item):
            found.append(item)
            continue
        parts: list[ContentPart] = []
        for part in _parts(item):
            if part.get("type") == FILE and "file_data" in part:
                part = await as_text(part, takes_files=takes_files, is_new=index >= newest)
            parts.append(part)
        found.append(with_parts(item, parts))
    return found


def _parts(item: Item) -> list[ContentPart]:
    parts = item.get(parts_field(item))
    if not isinstance(parts, list):
        return []
    return parts


def _has_files(item: Item) -> bool:
    return any(part.get("type") == FILE for part in _parts(item))
