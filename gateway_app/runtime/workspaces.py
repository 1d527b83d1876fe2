"""Workspaces: which folder has the files of an owner, and which processes have that folder.

A file in the folder names it: processes that read the same name have the same files, on one host
or through a shared file system. A copy of the folder on another host has the name too.
"""

import logging
import socket
from dataclasses import dataclass
from datetime import timedelta
from functools import cache, lru_cache
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db.models import QuerySet
from django.db.models.functions import Now

from gateway_app.config.secrets import kept_secret
from gateway_app.models import RuntimeProcess, WorkspaceHome
from gateway_app.runtime.roles import Role
from responses_app.models import Response
from responses_app.models.compiled import CompiledQuery
from responses_app.services.workspaces import workspaces_folder

logger = logging.getLogger(__name__)

HOST = socket.gethostname()
NAME_FILE = ".name"
NAME_BYTES = 9
PINNED = "pinned"


@cache
def folder_name() -> str:
    """Of the folder of this process; made at its first use."""
    folder = workspaces_folder()
    folder.mkdir(mode=0o700, exist_ok=True)
    return kept_secret(folder / NAME_FILE, random_bytes=NAME_BYTES)


def known_folder_name() -> str:
    """Empty where the folder can't be used: then the tools fail, and everything else works."""
    try:
        return folder_name()
    except (OSError, ImproperlyConfigured) as error:
        logger.error("The folder of workspaces can't be used: %s", error)
        return ""


class FilesElsewhere(Exception):
    """A tool was not run, as this process does not have the files that it works on."""


@dataclass(frozen=True)
class FileLocation:
    """Of an owner's files, as this process sees it."""

    is_here: bool
    has_process: bool = False  # another process can go on with the turn
    reason: str = ""  # why this one can't


HERE = FileLocation(is_here=True)


def find_files(owner_id: int) -> FileLocation:
    """In the writer: the first use decides where the files of an owner are."""
    mine = known_folder_name()
    if not mine:
        return FileLocation(is_here=False, reason=f"the folder of workspaces on {HOST} is unusable")
    home, _is_new = WorkspaceHome.objects.get_or_create(
        owner_id=owner_id, defaults={"workspaces": mine, "host": HOST}
    )
    if home.workspaces == mine:
        return HERE
    has_process = is_pinning() and _present().filter(workspaces=home.workspaces).exists()
    return FileLocation(is_here=False, has_process=has_process, reason=_reason(home))


def _reason(home: WorkspaceHome) -> str:
    processes = RuntimeProcess.objects.filter(workspaces=home.workspaces)
    last_seen = processes.order_by("-heartbeat_at").values_list("heartbeat_at", flat=True).first()
    seen = "no process there is known"
    if last_seen is not None:
        seen = f"its last sign of life was at {last_seen:%Y-%m-%d %H:%M:%S} UTC"
    return (
        f"the files of this workspace are on the host {home.host}, and {seen}. "
        f"The host {HOST} does not have them, so nothing was read or changed. "
        "They are there again when that host runs; an operator can move them."
    )


def is_pinning() -> bool:
    return bool(settings.HERMES_WORKSPACES == PINNED)


def folder_elsewhere(owner_id: int) -> str:
    """The folder of an owner whose turns other processes run; empty if this one may run them."""
    if not is_pinning():
        return ""
    found = _elsewhere(_claiming_role(), settings.HERMES_WORKSPACE_SECS)
    return found.first(owner_id, known_folder_name()) or ""


def owners_elsewhere() -> list[int]:
    """For the sweep: the owners of open responses that other processes run."""
    if not is_pinning():
        return []
    found = _waiting_elsewhere(_claiming_role(), settings.HERMES_WORKSPACE_SECS)
    return [row[0] for row in found.rows(known_folder_name())]


def host_elsewhere(owner_id: int) -> str:
    """The host that has the files of an owner, if this process does not have them."""
    home = WorkspaceHome.objects.filter(pk=owner_id).first()
    if home is None or home.workspaces == known_folder_name():
        return ""
    return home.host


def _present() -> QuerySet[RuntimeProcess]:
    return _present_as(_claiming_role(), settings.HERMES_WORKSPACE_SECS)


def _claiming_role() -> str:
    """Of the processes that run turns; empty where all do but those for pages."""
    if settings.HERMES_DISPATCH == "workers":
        return Role.WORKER
    return ""


def _present_as(role: str, secs: float) -> QuerySet[RuntimeProcess]:
    """The processes that run turns, and those that may just be starting again."""
    recent = RuntimeProcess.objects.filter(heartbeat_at__gte=Now() - timedelta(seconds=secs))
    if role:
        return recent.filter(role=role)
    return recent.exclude(role=Role.PAGES)


# -- compiled statements ----------------------------------------------------------------
def _homes_elsewhere(folder: str, role: str, secs: float) -> QuerySet[WorkspaceHome]:
    others = WorkspaceHome.objects.exclude(workspaces=folder)
    return others.filter(workspaces__in=_present_as(role, secs).values("workspaces"))


@lru_cache(maxsize=8)
def _elsewhere(role: str, secs: float) -> CompiledQuery:
    def folder_of(owner_id: int, here: str) -> QuerySet[WorkspaceHome, Any]:
        homes = _homes_elsewhere(here, role, secs).filter(pk=owner_id)
        return homes.values_list("workspaces")[:1]

    return CompiledQuery(folder_of)


@lru_cache(maxsize=8)
def _waiting_elsewhere(role: str, secs: float) -> CompiledQuery:
    def owners(here: str) -> QuerySet[WorkspaceHome, Any]:
        waiting = Response.objects.open().values("owner_id")
        homes = _homes_elsewhere(here, role, secs).filter(owner_id__in=waiting)
        return homes.values_list("owner_id")

    return CompiledQuery(owners)
