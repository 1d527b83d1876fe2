"""The search in a process of its own: a regular expression can run for ever, and holds the GIL."""

import io
import re
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

from gateway_app.tools.read_file import SNIFFED_BYTES, is_binary
from gateway_app.tools.support.output import shown
from gateway_app.tools.support.tree import Walk, is_match
from gateway_app.tools.support.workspace import (
    Parts,
    PathRefused,
    explained,
    locate,
    open_regular,
    opened_folder,
)

MAX_FILE_BYTES = 50_000_000
MAX_LINE_CHARS = 10_000  # of a line, that are searched
MAX_SHOWN_CHARS = 300  # of a line, that are shown
MAX_CPU_SECS = 60  # in case the server is killed and can't stop its worker
IS_REFUSED = 2


def search(workspace: Path, path: str, pattern: str, glob: str) -> Iterator[str]:
    """``path:line:text`` for every line that matches."""
    try:
        expression = re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise PathRefused(
            f"the argument 'pattern' is not a regular expression of Python: {error}"
        ) from error
    with explained(path):
        start = locate(workspace, path)
        for parts, folder in _files(workspace, start, glob):
            name = shown("/".join(parts))
            for number, line in _lines(parts[-1], folder):
                if found := expression.search(line):
                    yield f"{name}:{number}:{_excerpt(line, found.start())}"


def _files(workspace: Path, start: Parts, glob: str) -> Iterator[tuple[Parts, int]]:
    if start and (workspace.resolve().joinpath(*start)).is_file():
        with opened_folder(workspace, start[:-1]) as folder:
            yield start, folder
        return
    for entry in Walk(workspace, start, is_recursive=True):
        if not entry.is_file or entry.size > MAX_FILE_BYTES:
            continue
        if not glob or is_match(entry.parts[len(start) :], glob):
            yield entry.parts, entry.folder


def _lines(name: str, folder: int) -> Iterator[tuple[int, str]]:
    try:
        file = open_regular(name, folder)
    except (OSError, PathRefused):
        return  # gone, changed or not readable
    with file:
        if is_binary(file.read(SNIFFED_BYTES)):
            return
        file.seek(0)
        for number, line in enumerate(io.BytesIO(file.read(MAX_FILE_BYTES)), 1):
            yield number, line[:MAX_LINE_CHARS].decode(errors="replace").rstrip("\r\n")


def _excerpt(line: str, position: int) -> str:
    start = max(0, position - MAX_SHOWN_CHARS // 3)
    cut = line[start : start + MAX_SHOWN_CHARS]
    if start + len(cut) < len(line):
        cut += "..."
    if start:
        cut = "..." + cut
    return cut


def main() -> int:
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_CPU_SECS, MAX_CPU_SECS))
    workspace, path, pattern, glob, max_results = sys.argv[1:]
    found = 0
    try:
        for line in search(Path(workspace), path, pattern, glob):
            sys.stdout.buffer.write(line.encode(errors="backslashreplace") + b"\n")
            sys.stdout.buffer.flush()  # what is found before the time is up counts
            found += 1
            if found == int(max_results):
                break
    except PathRefused as refusal:
        sys.stdout.buffer.write(str(refusal).encode(errors="backslashreplace"))
        return IS_REFUSED
    return 0
