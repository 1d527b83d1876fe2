"""Read a text file of the workspace, a page at a time, or look at an image."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from gateway_app.agent.tools import Tool, ToolContext, ToolOutput
from gateway_app.tools.support.images import MAX_IMAGE_BYTES, as_image_url, image_kind
from gateway_app.tools.support.schema import checked, parameters_of
from gateway_app.tools.support.workspace import (
    PATH,
    PathRefused,
    explained,
    opened_file,
)
from responses_app.protocol.token_estimate import text_tokens

MAX_LINES = 2000
MAX_CHARS = 40_000  # so that the model sees all of it, with the note how to go on
MAX_LINE_BYTES = 2000
MAX_SCANNED_BYTES = 1 << 30  # a sparse file can be larger than any disk
SNIFFED_BYTES = 8192
NOTE_TOKENS = 100  # for the notes at the end

PARAMETERS = parameters_of(
    {"path": PATH},
    {
        "offset": {
            "type": "integer",
            "minimum": 1,
            "default": 1,
            "description": "The first line to read",
        },
        "limit": {"type": "integer", "minimum": 1, "maximum": MAX_LINES, "default": MAX_LINES},
    },
)


async def read_file(arguments: dict[str, Any], context: ToolContext) -> str | ToolOutput:
    values = checked(arguments, PARAMETERS)
    return await asyncio.to_thread(
        _read,
        context.workspace,
        values["path"],
        values["offset"],
        values["limit"],
        context.max_tokens,
    )


def _read(workspace: Path, path: str, offset: int, limit: int, max_tokens: int) -> str | ToolOutput:
    with explained(path), opened_file(workspace, path) as file:
        size = os.fstat(file.fileno()).st_size
        start = file.read(SNIFFED_BYTES)
        if not start:
            return "[the file is empty]"
        kind = image_kind(start)
        if kind:
            return _image(file, kind, size)
        if is_binary(start):
            begin = start[:16].hex(" ")
            return f"[a binary file of {size} bytes, which begins with {begin}; it is not shown]"
        file.seek(0)
        before = _skip(file, offset - 1)
        if before < offset - 1 or file.tell() >= size:
            return f"[the file ends before line {offset}: it has {before} lines]"
        return _page(file, offset, limit, size, max_tokens - NOTE_TOKENS)


def _image(file: BinaryIO, kind: str, size: int) -> str | ToolOutput:
    if size > MAX_IMAGE_BYTES:
        return f"[an image, {kind}, {size} bytes; over {MAX_IMAGE_BYTES} bytes it is not shown]"
    file.seek(0)
    url = as_image_url(kind, file.read(MAX_IMAGE_BYTES))
    return ToolOutput(f"[an image, {kind}, {size} bytes]", (url,))


def _page(file: BinaryIO, offset: int, limit: int, size: int, room: int) -> str:
    shown: list[str] = []
    chars, tokens, has_crlf = 0, 0, False
    for number, (line, is_cut) in enumerate(_lines(file), offset):
        has_crlf = has_crlf or line.endswith(b"\r")
        content = line.decode(errors="replace").rstrip("\r")
        text = f"{number}|{content}"
        if is_cut:
            text += " [line cut]"
        tokens += text_tokens(text) + 1
        is_full = chars + len(text) > MAX_CHARS or tokens > room
        if len(shown) == limit or (shown and is_full):
            shown.append(f"[cut: go on with read_file offset={number}; the file has {size} bytes]")
            break
        shown.append(text)
        chars += len(text) + 1
    if has_crlf:
        shown.append("[the lines end with CRLF]")
    return "\n".join(shown)


def is_binary(start: bytes) -> bool:
    return b"\0" in start


def _skip(file: BinaryIO, lines: int) -> int:
    """Passes over so many lines; the number of those there were."""
    passed, chunk = 0, b"\n"
    while passed < lines:
        following = file.read(1 << 20)
        if not following:
            return passed + (not chunk.endswith(b"\n"))
        _check_scanned(file)
        chunk = following
        ends = chunk.count(b"\n")
        if passed + ends >= lines:
            file.seek(_end_of_line(chunk, lines - passed) - len(chunk), os.SEEK_CUR)
            return lines
        passed += ends
    return passed


def _end_of_line(chunk: bytes, lines: int) -> int:
    position = 0
    for _ in range(lines):
        position = chunk.index(b"\n", position) + 1
    return position


def _lines(file: BinaryIO) -> Iterator[tuple[bytes, bool]]:
    """Each line without its end, as much of it as is shown, and whether there is more of it."""
    while line := file.readline(MAX_LINE_BYTES):
        rest, is_cut = line, False
        while rest and not rest.endswith(b"\n"):
            rest = file.readline(1 << 20)
            is_cut = is_cut or bool(rest.strip(b"\r\n"))
            _check_scanned(file)
        yield line.removesuffix(b"\n"), is_cut


def _check_scanned(file: BinaryIO) -> None:
    if file.tell() > MAX_SCANNED_BYTES:
        raise PathRefused(
            f"only the first {MAX_SCANNED_BYTES} bytes of a file can be read; use the terminal"
        )


TOOL = Tool(
    name="read_file",
    description=(
        "Read a text file of the workspace; use it instead of cat in the terminal. "
        "Each line comes as NUMBER|TEXT; the number and the bar "
        f"are not in the file. At most {MAX_LINES} lines and {MAX_CHARS} characters at once: "
        "go on with offset. "
        f"Lines over {MAX_LINE_BYTES} bytes are cut. Images (PNG, JPEG, GIF, WebP) "
        "are shown if you can see; other binary files are only described."
    ),
    parameters=PARAMETERS,
    run=read_file,
    is_replay_safe=True,
    is_read_only=True,
    rest_hint="call read_file again with the same path, and offset and limit for the lines between.",
)
