"""Confinement: a path that a model names leads into the workspace, or nowhere."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

PATH = {
    "type": "string",
    "minLength": 1,
    "maxLength": 4096,  # PATH_MAX
    "description": "Relative to the workspace",
}
Parts = tuple[str, ...]
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without O_NONBLOCK a FIFO without a writer would block the thread for ever.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_REASONS = {
    errno.ENOENT: "there is no such file or folder",
    errno.ENOTDIR: "it, or a part of it, is not a folder",
    errno.ELOOP: "its symbolic links run in a circle or have just changed",
    errno.EISDIR: "it is a folder",
}


class PathRefused(ValueError):
    """A path can't be used; the message is for the model."""


def prepared(workspace: Path) -> Path:
    """The workspace without symbolic links, made if it is not there yet."""
    workspace.mkdir(mode=0o700, parents=True, exist_ok=True)
    return workspace.resolve()


def locate(workspace: Path, path: str) -> Parts:
    """The way from the workspace to a path, symbolic links resolved; it need not exist yet."""
    if "\0" in path:
        raise PathRefused("a path can't contain a NUL character")
    root = prepared(workspace)
    if path == "~" or path.startswith("~/"):  # the home folder of the terminal
        path = f".{path[1:]}"
    real = Path(os.path.realpath(root / path))
    if not real.is_relative_to(root):
        raise PathRefused(
            f"{path}: leads outside the workspace; use a path relative to the workspace"
        )
    return real.relative_to(root).parts


@contextmanager
def explained(path: str) -> Iterator[None]:
    """Failures of the file system in words, without the server's own paths."""
    try:
        yield
    except OSError as error:
        reason = _REASONS.get(error.errno or 0) or os.strerror(error.errno or 0)
        raise PathRefused(f"{path}: {reason}") from error


@contextmanager
def opened_folder(workspace: Path, parts: Parts, *, is_made: bool = False) -> Iterator[int]:
    """A descriptor of the folder, walked to step by step without following a single link.

    ``locate`` has resolved the links: one that is met here is newer, and may lead outside.
    """
    folder = os.open(prepared(workspace), _FOLDER)
    try:
        for part in parts:
            if is_made:
                _make(part, folder)
            inner = os.open(part, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = inner
        yield folder
    finally:
        os.close(folder)


def _make(name: str, folder: int) -> None:
    try:
        os.mkdir(name, dir_fd=folder)
    except FileExistsError:
        return  # the caller opens it, which fails if it is no folder


def open_regular(name: str, folder: int) -> BinaryIO:
    """A plain file to read from; folders, FIFOs, sockets and devices are refused."""
    check_regular(name, folder)  # opening a device can do things
    file = os.open(name, _FILE, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise PathRefused(f"{name}: is not a regular file")
    return os.fdopen(file, "rb")


def check_regular(name: str, folder: int) -> int:
    """The mode of a plain file."""
    mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    if stat.S_ISDIR(mode):
        raise PathRefused(f"{name}: is a folder; list_files shows what is in it")
    if stat.S_ISLNK(mode):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    if not stat.S_ISREG(mode):
        raise PathRefused(f"{name}: is not a regular file")
    return mode


@contextmanager
def opened_file(workspace: Path, path: str) -> Iterator[BinaryIO]:
    parts = locate(workspace, path)
    if not parts:
        raise PathRefused(
            f"{path}: is the workspace itself, a folder; list_files shows what is in it"
        )
    with opened_folder(workspace, parts[:-1]) as folder, open_regular(parts[-1], folder) as file:
        yield file
