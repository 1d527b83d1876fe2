"""Replace a piece of a file of the workspace."""

import asyncio
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from gateway_app.agent.tools import Tool, ToolContext
from gateway_app.tools.support.schema import checked, parameters_of
from gateway_app.tools.support.workspace import (
    PATH,
    PathRefused,
    explained,
    locate,
    open_regular,
    opened_folder,
)
from gateway_app.tools.write_file import encoded, replace_file

MAX_FILE_BYTES = 10_000_000
MAX_LISTED_LINES = 20

PARAMETERS = parameters_of(
    {
        "path": PATH,
        "old_string": {
            "type": "string",
            "minLength": 1,
            "description": "The exact text to replace",
        },
        "new_string": {"type": "string", "description": "What takes its place; empty to delete it"},
    },
    {
        "replace_all": {
            "type": "boolean",
            "default": False,
            "description": "Replace every occurrence",
        }
    },
)
_locks: WeakValueDictionary[Path, asyncio.Lock] = WeakValueDictionary()


def workspace_lock(workspace: Path) -> asyncio.Lock:
    """Two patches of one turn to one file must both last; no tenant waits for another."""
    return _locks.setdefault(workspace, asyncio.Lock())


async def patch(arguments: dict[str, Any], context: ToolContext) -> str:
    values = checked(arguments, PARAMETERS)
    old = encoded("old_string", values["old_string"])
    new = encoded("new_string", values["new_string"])
    if old == new:
        raise ValueError("the arguments 'old_string' and 'new_string' are the same")
    # Outside the thread: patches that wait must not hold the threads of other tools.
    async with workspace_lock(context.workspace):
        return await asyncio.to_thread(
            _patch, context.workspace, values["path"], old, new, values["replace_all"]
        )


def _patch(workspace: Path, path: str, old: bytes, new: bytes, is_everywhere: bool) -> str:
    with explained(path):
        parts = locate(workspace, path)
        if not parts:
            raise PathRefused(f"{path}: is the workspace itself, a folder")
        with opened_folder(workspace, parts[:-1]) as folder:
            with open_regular(parts[-1], folder) as file:
                data = file.read(MAX_FILE_BYTES + 1)
            if len(data) > MAX_FILE_BYTES:
                raise PathRefused(f"{path}: has more than {MAX_FILE_BYTES} bytes; use the terminal")
            # read_file shows lines without their ends.
            if old not in data and b"\r\n" in data and b"\r" not in old:
                old = old.replace(b"\n", b"\r\n")
                new = new.replace(b"\n", b"\r\n")
            count = data.count(old)
            where = _lines_with(data, old)
            _check_found(path, count, where, data, old, is_everywhere)
            _check_size(path, len(data) + count * (len(new) - len(old)))
            replace_file(folder, parts[-1], data.replace(old, new))
    noun = "occurrence" if count == 1 else "occurrences"
    return f"Replaced {count} {noun} in {path}, at {where}."


def _lines_with(data: bytes, piece: bytes) -> str:
    """The lines in which it begins, as far as they are shown; empty if it does not occur."""
    numbers = list(islice(_line_numbers(data, piece), MAX_LISTED_LINES + 1))
    if not numbers:
        return ""
    if len(numbers) == 1:
        return f"line {numbers[0]}"
    listed = [str(number) for number in numbers[:MAX_LISTED_LINES]]
    if len(numbers) > MAX_LISTED_LINES:
        listed.append("...")
    return f"lines {', '.join(listed)}"


def _line_numbers(data: bytes, piece: bytes) -> Iterator[int]:
    number, position = 1, 0
    while (found := data.find(piece, position)) >= 0:
        number += data.count(b"\n", position, found)
        yield number
        number += piece.count(b"\n")
        position = found + len(piece)


def _check_found(
    path: str, count: int, where: str, data: bytes, old: bytes, is_everywhere: bool
) -> None:
    if not count:
        raise ValueError(
            f"{path}: old_string does not occur in it{_hint(data, old)}; nothing was changed"
        )
    if count > 1 and not is_everywhere:
        raise ValueError(
            f"{path}: old_string occurs {count} times, at {where}; nothing was changed. "
            "Give more of the text around the one you mean, or set replace_all"
        )


def _check_size(path: str, size: int) -> None:
    """Before the new content is made: a small file and a small replacement can multiply."""
    if size > MAX_FILE_BYTES:
        raise ValueError(
            f"{path}: would have {size} bytes, and patch writes at most {MAX_FILE_BYTES}; "
            "nothing was changed"
        )


def _hint(data: bytes, old: bytes) -> str:
    for line in old.splitlines():
        first = line.strip()
        if first:
            where = _lines_with(data, first)
            if where:
                return f", but its first line does, at {where}: compare the rest and the spaces"
            return ""
    return ""


TOOL = Tool(
    name="patch",
    description=(
        "Replace old_string with new_string in a file of the workspace. old_string is exact text, "
        "spaces and line breaks included, without the line numbers that read_file shows. "
        "It must occur exactly once, unless replace_all is set. "
        "Use it to change a part of a file, after read_file; use write_file for a new file. "
        f"Files up to {MAX_FILE_BYTES} bytes."
    ),
    parameters=PARAMETERS,
    run=patch,
)
