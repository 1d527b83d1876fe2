"""Files in a folder of the system that not every account may read, but perhaps the server."""

import os
import stat
import time
from dataclasses import dataclass, field
from pathlib import Path

MAX_AGE_SECS = 10  # a change of a mode does not show in the time of the folder


@dataclass
class PrivateFiles:
    """Walks the folder again when an entry was made, removed or renamed, and from time to time.

    Only the walk finds changed modes.
    """

    folder: Path
    _options: tuple[str, ...] = ()
    _changes: dict[str, int] = field(default_factory=dict)  # of each folder that was walked
    _walked_at: float = float("-inf")

    def options(self) -> tuple[str, ...]:
        """Bubblewrap's options that cover them."""
        if self._is_outdated():
            now = time.monotonic()
            found = _Walk()
            found.visit(str(self.folder))
            self._options, self._changes, self._walked_at = tuple(found.options), found.changes, now
        return self._options

    def _is_outdated(self) -> bool:
        if time.monotonic() - self._walked_at > MAX_AGE_SECS:
            return True
        for path, changed in self._changes.items():
            try:
                if os.stat(path).st_mtime_ns != changed:
                    return True
            except OSError:
                return True
        return False


@dataclass
class _Walk:
    options: list[str] = field(default_factory=list)
    changes: dict[str, int] = field(default_factory=dict)

    def visit(self, folder: str) -> None:
        try:
            self.changes[folder] = os.stat(folder).st_mtime_ns
            entries = list(os.scandir(folder))
        except OSError:
            return  # gone, or out of the server's own reach
        for entry in entries:
            try:
                mode = entry.stat(follow_symlinks=False).st_mode
            except OSError:
                continue
            if stat.S_ISLNK(mode):
                continue
            if mode & stat.S_IROTH:
                if stat.S_ISDIR(mode):
                    self.visit(entry.path)
            elif stat.S_ISDIR(mode):
                self.options += ("--tmpfs", entry.path, "--remount-ro", entry.path)
            else:
                self.options += ("--ro-bind", "/dev/null", entry.path)
