"""One process for each platform that is polled: two would get and answer its messages twice."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class AlreadyRunning(Exception):
    """Another process of this machine runs the platform."""


@contextmanager
def only_process(folder: Path) -> Iterator[None]:
    """The lock ends with the process, however it ends."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AlreadyRunning(f"Another process runs {folder.name}: end it first.") from None
        yield
