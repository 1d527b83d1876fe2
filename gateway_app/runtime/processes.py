"""Which processes live: the rows behind leases and health."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db.models import Case, Q, QuerySet, Value, When
from django.db.models.functions import Now

from gateway_app.models import ProcessState, RuntimeProcess
from gateway_app.runtime.workspaces import HOST, known_folder_name
from responses_app.models import Response
from responses_app.models.compiled import CompiledQuery
from responses_app.services.lifecycle.claim import lease

KEEP_ENDED = timedelta(days=30)
GONE = ("Z", "X")  # states of /proc: ended, and not yet collected by the parent
# Read by hand: psutil knows neither the boot id nor the PID namespace, and the rest is one file.
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def machine_id() -> str:
    """The scope of a pid: a kernel and a PID namespace; empty where it can't be known.

    Containers may share a hostname, and each has a process 1.
    """
    try:
        is_proc_ours = os.readlink("/proc/self") == str(os.getpid())
        if not is_proc_ours:  # /proc is of another namespace, with other pids
            return ""
        return f"{BOOT_ID.read_text().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


MACHINE = machine_id()


@dataclass(frozen=True)
class Dead:
    gone: Sequence[str]  # of this machine, by their pids
    silent: Sequence[str]  # without a heartbeat for a lease

    @property
    def ids(self) -> list[str]:
        return list(self.gone) + list(self.silent)


@dataclass(frozen=True)
class Beat:
    is_drain_requested: bool  # by an operator
    was_late: bool  # by the clock of the database


def started_at_tick(pid: int) -> str:
    """When the kernel started a pid, or "" when no live process has it: pids are used again."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    state, started = fields[0], fields[19]
    if state in GONE:
        return ""
    return started


def register(
    process_id: str, role: str, secrets_digest: str = "", settings_digest: str = ""
) -> None:
    ended = RuntimeProcess.objects.exclude(state=ProcessState.RUNNING)
    ended.filter(heartbeat_at__lt=Now() - KEEP_ENDED).delete()
    RuntimeProcess.objects.create(
        id=process_id,
        host=HOST,
        machine=MACHINE,
        pid=os.getpid(),
        pid_started=started_at_tick(os.getpid()),
        role=role,
        version=settings.HERMES_VERSION,
        secrets_digest=secrets_digest,
        settings_digest=settings_digest,
        workspaces=known_folder_name(),
        started_at=Now(),
        heartbeat_at=Now(),
    )


def beat(process_id: str, active: int, *, is_draining: bool = False, lag_ms: int = 0) -> Beat:
    """A process that was declared lost and beats is alive; it does not get its work back."""
    mine = RuntimeProcess.objects.filter(pk=process_id).exclude(state=ProcessState.STOPPED)
    lateness = Case(When(_is_late(), then=Value(True)), default=Value(False))
    found = mine.values_list("drain_requested_at", lateness).first()
    mine.update(
        heartbeat_at=Now(),
        active_responses=active,
        state=ProcessState.RUNNING,
        exit_reason="",
        is_draining=is_draining,
        lag_ms=lag_ms,
    )
    if found is None:
        return Beat(is_drain_requested=False, was_late=False)
    drain_requested_at, was_late = found
    return Beat(drain_requested_at is not None, was_late)


def note_draining(process_id: str) -> None:
    """Other processes claim what comes, without waiting for its end."""
    RuntimeProcess.objects.filter(pk=process_id).update(is_draining=True)


def retire(process_id: str) -> None:
    """An orderly end: the work of this process is free for the next."""
    RuntimeProcess.objects.filter(pk=process_id).update(
        state=ProcessState.STOPPED, exit_reason="stopped", heartbeat_at=Now(), active_responses=0
    )
    Response.objects.release([process_id], is_crash=False)


# -- who is dead ------------------------------------------------------------------------
def is_silent() -> Q:
    return Q(heartbeat_at__lt=Now() - lease())


def _is_late() -> Q:
    return Q(heartbeat_at__lt=Now() - lease() / 2)


def is_late(process_id: str) -> bool:
    """By the clock of the database, which a step makes later than the last heartbeat."""
    return RuntimeProcess.objects.filter(_is_late(), pk=process_id).exists()


def live() -> QuerySet[RuntimeProcess, str]:
    """The owners whose leases stay theirs, even those that ran out."""
    running = RuntimeProcess.objects.filter(state=ProcessState.RUNNING)
    return running.exclude(is_silent()).values_list("pk", flat=True)


def count_claimers(role: str) -> int:
    """The live processes of a role that claim turns."""
    found = 0
    for machine, pid, pid_started in _claimers(lease()).rows(role):
        if not _is_gone(machine, pid, pid_started):
            found += 1
    return found


def has_others(me: str) -> bool:
    """Other processes that run, or died without retiring."""
    return _first_other.first(me) is not None


def _others(me: str) -> QuerySet[RuntimeProcess]:
    return RuntimeProcess.objects.filter(state=ProcessState.RUNNING).exclude(pk=me)


def _one_other(me: str) -> QuerySet[RuntimeProcess, Any]:
    return _others(me).values_list("pk")[:1]


def _on_machine(me: str, machine: str) -> QuerySet[RuntimeProcess, Any]:
    found = _others(me).filter(machine=machine)
    return found.values_list("pk", "machine", "pid", "pid_started")


# Each process asks these once a second.
_first_other = CompiledQuery(_one_other)
_others_here = CompiledQuery(_on_machine)


@lru_cache(maxsize=8)
def _claimers(lease: timedelta) -> CompiledQuery:
    def of_role(role: str) -> QuerySet[RuntimeProcess, Any]:
        running = RuntimeProcess.objects.filter(state=ProcessState.RUNNING, role=role)
        found = running.filter(is_draining=False).exclude(heartbeat_at__lt=Now() - lease)
        return found.values_list("machine", "pid", "pid_started")

    return CompiledQuery(of_role)


@lru_cache(maxsize=8)
def _silent_others(lease: timedelta) -> CompiledQuery:
    def silent(me: str) -> QuerySet[RuntimeProcess, Any]:
        return _others(me).filter(heartbeat_at__lt=Now() - lease).values_list("pk")

    return CompiledQuery(silent)


def find_dead(me: str, *, judges_silence: bool) -> Dead:
    """Processes that ended without retiring.

    Those of this machine are known at once, before their leases run out. The others are known by
    their silence; one that only slept is fenced by the attempt when it wakes up.
    """
    gone: list[str] = []
    for pk, machine, pid, pid_started in _others_here.rows(me, MACHINE):
        if _is_gone(machine, pid, pid_started):
            gone.append(pk)
    silent: list[str] = []
    if judges_silence:
        found = [row[0] for row in _silent_others(lease()).rows(me)]
        silent = [pk for pk in found if pk not in gone]
    return Dead(gone, silent)


def is_here(process: RuntimeProcess) -> bool:
    return bool(MACHINE) and process.machine == MACHINE


def is_dead_here(process: RuntimeProcess) -> bool:
    """Of a process of this machine."""
    return _is_gone(process.machine, process.pid, process.pid_started)


def _is_gone(machine: str, pid: int, pid_started: str) -> bool:
    if not MACHINE or machine != MACHINE:
        return False
    try:
        return started_at_tick(pid) != pid_started
    except OSError:  # no file descriptor is free here: nothing is known of the other process
        return False


def mark_lost(dead: Dead) -> int:
    """In a transaction: free the work of these processes, unless one has beaten since."""
    running = RuntimeProcess.objects.filter(state=ProcessState.RUNNING)
    found = running.filter(Q(pk__in=dead.gone) | Q(pk__in=dead.silent) & is_silent())
    ids = list(found.select_for_update().values_list("pk", flat=True))
    RuntimeProcess.objects.filter(pk__in=ids).update(
        state=ProcessState.LOST, exit_reason="the process is gone", active_responses=0
    )
    Response.objects.release(ids, is_crash=True)
    return len(ids)
