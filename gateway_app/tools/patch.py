"""Replace a piece of a file of the workspace."""

import asyncio
import threading
from pathlib import Path
from typing import Any

from gateway_app.agent.tool_types import Tool, ToolContext
from gateway_app.tools.schema import checked, parameters_of
from gateway_app.tools.workspace import PATH, PathRefused, explained, locate, open_regular, opened_folder
from gateway_app.tools.write_file import encoded, replace_file

MAX_FILE_BYTES = 10_000_000
MAX_TOLD_LINES = 20

PARAMETERS = parameters_of(
    {
        "path": PATH,
        "old_string": {"type": "string", "minLength": 1, "description": "The exact text to replace"},
        "new_string": {"type": "string", "description": "What takes its place; empty to delete it"},
    },
    {"replace_all": {"type": "boolean", "default": False, "description": "Replace every occurrence"}},
)
_one_at_a_time = threading.Lock()  # two patches of one turn to one file must both last


async def patch(arguments: dict[str, Any], context: ToolContext) -> str:
    values = checked(arguments, PARAMETERS)
    old, new = encoded("old_string", values["old_string"]), encoded("new_string", values["new_string"])
    if old == new:
        raise ValueError("the arguments 'old_string' and 'new_string' are the same")
    return await asyncio.to_thread(_patch, context.workspace, values["path"], old, new, values["replace_all"])


def _patch(workspace: Path, path: str, old: bytes, new: bytes, is_everywhere: bool) -> str:
    with _one_at_a_time, explained(path):
        parts = locate(workspace, path)
        if not parts:
            raise PathRefused(f"{path}: is the workspace itself, a folder")
        with opened_folder(workspace, parts[:-1]) as folder:
            with open_regular(parts[-1], folder) as file:
                data = file.read(MAX_FILE_BYTES + 1)
            if len(data) > MAX_FILE_BYTES:
                raise PathRefused(f"{path}: has more than {MAX_FILE_BYTES} bytes; use the terminal")
            if old not in data and b"\r\n" in data and b"\r" not in old:  # read_file shows lines without their ends
                old, new = old.replace(b"\n", b"\r\n"), new.replace(b"\n", b"\r\n")
            lines = _lines_with(data, old)
            _check_found(path, lines, data, old, is_everywhere)
            replace_file(folder, parts[-1], data.replace(old, new))
    return f"Replaced {len(lines)} occurrence{'s' * (len(lines) > 1)} in {path}, at {_told(lines)}."


def _lines_with(data: bytes, piece: bytes) -> list[int]:
    """The line in which each occurrence begins."""
    lines, number, position = [], 1, 0
    while (found := data.find(piece, position)) >= 0:
        number += data.count(b"\n", position, found)
        lines.append(number)
        number += piece.count(b"\n")
        position = found + len(piece)
    return lines


def _check_found(path: str, lines: list[int], data: bytes, old: bytes, is_everywhere: bool) -> None:
    if not lines:
        raise ValueError(f"{path}: old_string does not occur in it{_hint(data, old)}; nothing was changed")
    if len(lines) > 1 and not is_everywhere:
        raise ValueError(
            f"{path}: old_string occurs {len(lines)} times, at {_told(lines)}; nothing was changed. "
            "Give more of the text around the one you mean, or set replace_all"
        )


def _hint(data: bytes, old: bytes) -> str:
    first = next((line.strip() for line in old.splitlines() if line.strip()), b"")
    numbers = [n for n, line in enumerate(data.split(b"\n"), 1) if first and first in line]
    return f", but its first line does, at {_told(numbers)}: compare the rest and the spaces" if numbers else ""


def _told(lines: list[int]) -> str:
    told = ", ".join(str(number) for number in lines[:MAX_TOLD_LINES])
    more = ", ..." if len(lines) > MAX_TOLD_LINES else ""
    return f"line{'s' * (len(lines) > 1)} {told}{more}"


TOOL = Tool(
    name="patch",
    description=(
        "Replace old_string with new_string in a file of the workspace. old_string is exact text, spaces and line "
        "breaks included, without the line numbers that read_file shows. It must occur exactly once, unless "
        f"replace_all is set. Files up to {MAX_FILE_BYTES} bytes."
    ),
    parameters=PARAMETERS,
    run=patch,
)
