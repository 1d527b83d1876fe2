"""List the files of the workspace."""

import asyncio
import os
from pathlib import Path
from typing import Any

from gateway_app.agent.tools import Tool, ToolContext
from gateway_app.tools.support.output import shown
from gateway_app.tools.support.schema import checked, parameters_of
from gateway_app.tools.support.tree import (
    MAX_DEPTH,
    SKIPPED_FOLDERS,
    Entry,
    Walk,
    is_match,
)
from gateway_app.tools.support.workspace import PATH, explained, locate

MAX_LISTED = 1000
MAX_PATTERN_CHARS = 500

PARAMETERS = parameters_of(
    {},
    {
        "path": PATH | {"default": "."},
        "recursive": {
            "type": "boolean",
            "default": False,
            "description": "With all folders below it",
        },
        "pattern": {
            "type": "string",
            "minLength": 1,
            "maxLength": MAX_PATTERN_CHARS,
            "description": "A glob: '*.py' for names, 'src/**/*.py' for paths below the folder",
        },
    },
)


async def list_files(arguments: dict[str, Any], context: ToolContext) -> str:
    values = checked(arguments, PARAMETERS)
    return await asyncio.to_thread(
        _list, context.workspace, values["path"], values["recursive"], values["pattern"]
    )


def _list(workspace: Path, path: str, recursive: bool, pattern: str | None) -> str:
    with explained(path):
        start = locate(workspace, path)
        walk = Walk(workspace, start, is_recursive=recursive)
        lines: list[str] = []
        for entry in walk:
            if pattern is not None and not is_match(entry.parts[len(start) :], pattern):
                continue
            if len(lines) == MAX_LISTED:
                lines.append(f"[cut: more than {MAX_LISTED} entries; narrow path or pattern]")
                return "\n".join(lines)
            lines.append(_line(entry))
    if walk.is_cut:
        lines.append("[not complete: some folders are too large, too deep or can't be read]")
    return "\n".join(lines) or "[nothing there]"


def _line(entry: Entry) -> str:
    name = shown("/".join(entry.parts))
    if entry.is_folder:
        return f"{name}/"
    if entry.is_link:
        return f"{name} -> {shown(os.readlink(entry.parts[-1], dir_fd=entry.folder))}"
    if entry.is_file:
        return f"{name} ({entry.size} bytes)"
    return f"{name} (not a regular file)"


TOOL = Tool(
    name="list_files",
    description=(
        "List a folder of the workspace: paths relative to the workspace, folders with a slash at "
        "the end, sizes of files, targets of symbolic links. "
        "Use it to find files by name; search_files finds them by content. "
        f"At most {MAX_LISTED} entries, {MAX_DEPTH} folders deep. "
        f"What is in {', '.join(sorted(SKIPPED_FOLDERS))} is listed only when path names them."
    ),
    parameters=PARAMETERS,
    run=list_files,
    is_replay_safe=True,
    is_read_only=True,
    rest_hint="call list_files again with path set to one of the folders, or with a pattern.",
)
