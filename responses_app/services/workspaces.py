"""The folders in which the tools of an owner's agents keep files."""

from pathlib import Path

from django.conf import settings


def workspaces_folder() -> Path:
    home: Path = settings.HERMES_HOME
    return home / "workspaces"


def workspaces_of(owner_id: int) -> Path:
    """One folder for each agent is in it."""
    return workspaces_folder() / str(owner_id)


def count_files(folder: Path) -> int:
    return sum(not path.is_dir() or path.is_symlink() for path in folder.rglob("*"))
