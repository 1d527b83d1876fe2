"""``HERMES_HOME``, or a temporary folder: a degraded start is better than none."""

import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

FOLDER_MODE = 0o700
FILE_MODE = 0o600
DATABASE_FILE = "hermes.sqlite3"
COPIED_FILES = ("api_key", "secret_key", "admin_login", "config.yaml")


def open_home(environ: Mapping[str, str], default: Path) -> tuple[Path, str]:
    """The folder, and why it is a temporary one; the reason is empty when ``HERMES_HOME`` works."""
    named = environ.get("HERMES_HOME") or str(default)
    home = Path(os.path.expanduser(named)).resolve()  # environment files are read without a shell
    try:
        home.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise ImproperlyConfigured(
            f"HERMES_HOME: cannot create {home}: {error.strerror}."
        ) from error
    except OSError:
        pass  # the check below finds that it does not exist
    reason = why_not_writable(home, DATABASE_FILE)
    if reason:
        home = temporary_home(home)
    return home, reason


def why_not_writable(folder: Path, file_name: str) -> str:
    """Empty when the folder, and the file if it exists, can be written.

    A full disk does not count: the server can still read, and space may become free.
    """
    if not folder.is_dir():
        return f"{folder} does not exist and cannot be created"
    if not os.access(folder, os.W_OK | os.X_OK):
        return f"{folder} cannot be written"
    file = folder / file_name
    if file.exists() and not os.access(file, os.W_OK):
        return f"{file} cannot be written"
    return ""


def make_private(file: Path) -> None:
    """Only the owner may read a database, whatever the umask; SQLite's other files get its mode."""
    with suppress(
        OSError
    ):  # another account's file, or a full disk: opening the database explains it
        os.close(os.open(file, os.O_RDWR | os.O_CREAT, FILE_MODE))
        file.chmod(FILE_MODE)
        for beside in (file.with_name(f"{file.name}-wal"), file.with_name(f"{file.name}-shm")):
            if beside.exists():
                beside.chmod(FILE_MODE)


def temporary_home(home: Path) -> Path:
    """The same folder for every start on the same home, so that a restart finds what was stored.

    Its name can be guessed, so a folder that exists is used only if this user owns it and others
    have no rights on it.
    """
    digest = hashlib.sha256(str(home).encode()).hexdigest()[:12]
    folder = Path(tempfile.gettempdir()) / f"hermes-site-{os.geteuid()}-{digest}"
    try:
        folder.mkdir(mode=FOLDER_MODE)
    except FileExistsError:
        if not _is_ours(folder):
            return Path(tempfile.mkdtemp(prefix="hermes-site-"))
    for name in COPIED_FILES:
        if os.access(home / name, os.R_OK) and not (folder / name).exists():
            shutil.copy(home / name, folder / name)
    return folder


def _is_ours(folder: Path) -> bool:
    found = folder.lstat()
    is_closed = not found.st_mode & 0o077
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and is_closed
