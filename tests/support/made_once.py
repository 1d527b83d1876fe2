"""Folders that one process of a run makes, and all others copy: each of them would take seconds to make."""

import fcntl
import shutil
from collections.abc import Callable
from pathlib import Path


def made_once(folder: Path, make: Callable[[Path], None]) -> Path:
    """The folder, made by the first process that needs it; the others wait for that."""
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            unfinished = folder.with_suffix(".unfinished")
            shutil.rmtree(unfinished, ignore_errors=True)  # another process has failed to make it
            unfinished.mkdir(mode=0o700)  # as pytest makes folders, and as a home should be
            make(unfinished)
            unfinished.rename(folder)
    return folder
