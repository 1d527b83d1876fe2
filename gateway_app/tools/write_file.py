"""Write a file of the workspace, whole or not at all."""

import asyncio
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Any

from gateway_app.agent.tools import Tool, ToolContext
from gateway_app.tools.support.schema import checked, parameters_of
from gateway_app.tools.support.workspace import (
    PATH,
    PathRefused,
    check_regular,
    explained,
    locate,
    opened_folder,
)

PARAMETERS = parameters_of(
    {
        "path": PATH,
        "content": {"type": "string", "description": "The whole content of the file"},
    }
)


async def write_file(arguments: dict[str, Any], context: ToolContext) -> str:
    values = checked(arguments, PARAMETERS)
    return await asyncio.to_thread(_write, context.workspace, values["path"], values["content"])


def _write(workspace: Path, path: str, content: str) -> str:
    data = encoded("content", content)
    with explained(path):
        parts = locate(workspace, path)
        if not parts or path.endswith("/"):
            raise PathRefused(f"{path}: is a folder; name a file")
        with opened_folder(workspace, parts[:-1], is_made=True) as folder:
            replace_file(folder, parts[-1], data)
    return f"Wrote {len(data)} bytes to {path}."


def encoded(name: str, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"the argument {name!r} is not valid Unicode: {error.reason}") from error


def replace_file(folder: int, name: str, data: bytes) -> None:
    """Readers see the old content or the new; nothing is written through a link to elsewhere."""
    mode = None
    with suppress(FileNotFoundError):
        mode = check_regular(name, folder) & 0o777
    unfinished = f".unfinished-{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(unfinished, flags, 0o666, dir_fd=folder), "wb") as file:
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            file.write(data)
        os.replace(unfinished, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(unfinished, dir_fd=folder)
        raise


TOOL = Tool(
    name="write_file",
    description=(
        "Write a text file of the workspace: make it, or replace all of its content. "
        "Missing folders are made. To change a part of a file, use patch."
    ),
    parameters=PARAMETERS,
    run=write_file,
)
