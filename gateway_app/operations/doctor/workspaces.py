"""Whether the files of owners are where the processes that run their turns look for them."""

from collections.abc import Iterator

from django.conf import settings
from django.core import checks
from django.core.exceptions import ImproperlyConfigured

from gateway_app.models import ProcessState, RuntimeProcess, WorkspaceHome
from gateway_app.operations.doctor.messages import Ok
from gateway_app.runtime.processes import is_silent
from gateway_app.runtime.roles import Role
from gateway_app.runtime.workspaces import folder_name, is_pinning
from responses_app.services.workspaces import workspaces_folder

SHOWN = 5


def check_workspaces() -> Iterator[checks.CheckMessage]:
    """Each process has stored the name of its folder: this one compares them all."""
    try:
        mine = folder_name()
    except (OSError, ImproperlyConfigured) as error:
        yield checks.Error(
            f"cannot use {workspaces_folder()}: {error}",
            hint="Mount it, or correct its rights: tools that work on files fail without it.",
            obj="workspace",
            id="gateway_app.E040",
        )
        return
    running = RuntimeProcess.objects.filter(state=ProcessState.RUNNING).exclude(role=Role.PAGES)
    live = list(running.exclude(is_silent()))
    known = {process.workspaces for process in live}
    found = [_check_shared(mine, live), _check_lost(known | {mine})]
    problems = [message for message in found if message is not None]
    yield from problems
    if not problems:
        yield Ok("workspace", _summary(mine))


def _check_shared(mine: str, live: list[RuntimeProcess]) -> checks.CheckMessage | None:
    others = [str(process) for process in live if process.workspaces != mine]
    if is_pinning() or not others:
        return None
    return checks.Error(
        f"{len(others)} processes have another folder than {workspaces_folder()}: "
        + ", ".join(others[:SHOWN]),
        hint="Mount one folder there on every host and restart, or set HERMES_WORKSPACES=pinned.",
        obj="workspace",
        id="gateway_app.E041",
    )


def _check_lost(known: set[str]) -> checks.CheckMessage | None:
    lost = WorkspaceHome.objects.exclude(workspaces__in=known)
    hosts = sorted(set(lost.values_list("host", flat=True)))
    if not hosts:
        return None
    return checks.Warning(
        f"no process has the files of {lost.count()} owners; they are on {', '.join(hosts[:SHOWN])}",
        hint="Start a process there, or copy the files and run adopt_workspaces.",
        obj="workspace",
        id="gateway_app.W042",
    )


def _summary(mine: str) -> str:
    here = WorkspaceHome.objects.filter(workspaces=mine).count()
    elsewhere = WorkspaceHome.objects.exclude(workspaces=mine).count()
    text = f"{settings.HERMES_WORKSPACES}; the files of {here} owners are here"
    if elsewhere:
        text += f", those of {elsewhere} with other processes"
    return text
