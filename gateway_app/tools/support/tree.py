"""The files below a folder of the workspace, and patterns of their names."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path

from gateway_app.tools.support.workspace import Parts, opened_folder

MAX_DEPTH = 64
MAX_FOLDER_ENTRIES = 20_000  # of one folder; they are sorted in memory
MAX_SEEN = 200_000  # of one walk
SKIPPED_FOLDERS = frozenset({".git", ".venv", "__pycache__", "node_modules"})


@dataclass(frozen=True, slots=True)
class Entry:
    parts: Parts  # below the workspace
    mode: int
    size: int
    folder: int  # an open descriptor of the folder it is in, good until the next entry

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.mode)

    @property
    def is_file(self) -> bool:
        return stat.S_ISREG(self.mode)

    @property
    def is_link(self) -> bool:
        return stat.S_ISLNK(self.mode)


class Walk:
    """Folder by folder, sorted by name, links not followed; ``is_cut`` if not all of it was read."""

    def __init__(self, workspace: Path, start: Parts, *, is_recursive: bool) -> None:
        self._workspace = workspace
        self._start = start
        self._is_recursive = is_recursive
        self._seen = 0
        self.is_cut = False

    def __iter__(self) -> Iterator[Entry]:
        waiting = [self._start]
        while waiting:
            folder = waiting.pop()
            inner = []
            for entry in self._entries(folder):
                yield entry
                if (
                    entry.is_folder
                    and self._is_recursive
                    and entry.parts[-1] not in SKIPPED_FOLDERS
                ):
                    inner.append(entry.parts)
            if inner and len(folder) - len(self._start) >= MAX_DEPTH:
                self.is_cut = True
            else:
                waiting += reversed(inner)

    def _entries(self, parts: Parts) -> Iterator[Entry]:
        try:
            with opened_folder(self._workspace, parts) as folder:
                for found in self._names(folder):
                    yield from _entry(parts, found, folder)
        except OSError:
            if parts == self._start:
                raise
            self.is_cut = True  # gone, or not readable; the rest is still listed

    def _names(self, folder: int) -> list[str]:
        with os.scandir(folder) as found:
            names = [entry.name for entry in islice(found, MAX_FOLDER_ENTRIES + 1)]
        allowed = max(0, min(MAX_FOLDER_ENTRIES, MAX_SEEN - self._seen))
        self.is_cut = self.is_cut or len(names) > allowed
        self._seen += len(names)
        return sorted(names[:allowed])


def _entry(parts: Parts, name: str, folder: int) -> Iterator[Entry]:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return  # deleted since it was listed
    yield Entry((*parts, name), found.st_mode, found.st_size, folder)


def is_match(parts: Parts, pattern: str) -> bool:
    """Without a slash a glob is compared with the name, else with the whole path: ``**`` spans folders.

    All ways to read the ``**`` are followed at once, so that no pattern takes long.
    """
    if "/" not in pattern:
        return fnmatchcase(parts[-1], pattern)
    globs = tuple(part for part in pattern.split("/") if part not in ("", "."))
    states = _spread({0}, globs)
    for part in parts:
        reached = set()
        for state in states:
            if state == len(globs):
                continue
            if globs[state] == "**":
                reached.add(state)
            elif fnmatchcase(part, globs[state]):
                reached.add(state + 1)
        states = _spread(reached, globs)
    return len(globs) in states


def _spread(states: set[int], globs: Parts) -> set[int]:
    """With the states behind each ``**``, which may stand for no folder at all."""
    for state in range(len(globs)):
        if state in states and globs[state] == "**":
            states = states | {state + 1}
    return states
