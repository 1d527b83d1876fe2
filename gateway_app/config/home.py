"""Where the server keeps its things when it may not write where it should: a start is better than none."""

import hashlib
import os
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

PRIVATE_MODE = 0o600
KEPT_FILES = ("api_key", "secret_key", "admin_login", "config.yaml")


def why_not_writable(folder: Path, *files: str) -> str:
    """Empty when the folder, and those of the files that are there, can be written.

    A full disk is not asked about: reading still works there, and room may come.
    """
    if not folder.is_dir():
        return f"{folder} does not exist and cannot be created"
    unwritable = [
        path
        for path in (folder, *(folder / name for name in files))
        if path.exists() and not _may(path)
    ]
    return f"{unwritable[0]} cannot be written" if unwritable else ""


def _may(path: Path) -> bool:
    return os.access(path, os.W_OK | (os.X_OK if path.is_dir() else 0))


def make_private(file: Path) -> None:
    """Only its owner may read a database, whatever the umask; SQLite gives its other files the same mode."""
    with suppress(OSError):  # of another account, or on a full disk: opening it says more
        os.close(os.open(file, os.O_RDWR | os.O_CREAT, PRIVATE_MODE))
        file.chmod(PRIVATE_MODE)
        for beside in (file.with_name(f"{file.name}-wal"), file.with_name(f"{file.name}-shm")):
            if beside.exists():
                beside.chmod(PRIVATE_MODE)


def temporary_home(home: Path) -> Path:
    """The same for every start on the same home, so that a restart finds what the one before had stored.

    Its name can be guessed, so that only a folder of our own with no rights for others is taken.
    """
    digest = hashlib.sha256(str(home).encode()).hexdigest()[:12]
    folder = Path(tempfile.gettempdir()) / f"hermes-site-{os.geteuid()}-{digest}"
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        if not _is_ours(folder):
            return Path(tempfile.mkdtemp(prefix="hermes-site-"))
    for name in KEPT_FILES:
        if os.access(home / name, os.R_OK) and not (folder / name).exists():
            shutil.copy(home / name, folder / name)
    return folder


def _is_ours(folder: Path) -> bool:
    found = folder.lstat()
    return (
        stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077
    )
