"""The folders in which the tools of an owner's agents keep files."""

from pathlib import Path

from django.conf import settings
from django.utils.module_loading import import_string


def workspaces_folder() -> Path:
    home: Path = settings.HERMES_HOME
    return home / "workspaces"


def workspaces_of(owner_id: int) -> Path:
    """One folder for each agent is in it."""
    return workspaces_folder() / str(owner_id)


def host_elsewhere(owner_id: int) -> str:
    """The host that has the files of an owner, if this one does not; only the gateway knows."""
    find_host = import_string(settings.HERMES_WORKSPACE_HOST)
    host: str = find_host(owner_id)
    return host


def count_files(folder: Path) -> int:
    return sum(not path.is_dir() or path.is_symlink() for path in folder.rglob("*"))
