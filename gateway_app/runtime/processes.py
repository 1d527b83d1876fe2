"""Which processes live: the rows behind leases and health."""

import os
import socket
from datetime import datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.utils import timezone

from gateway_app.models import ProcessState, RuntimeProcess
from responses_app.models import Response

HOST = socket.gethostname()
KEEP_ENDED = timedelta(days=30)
SILENT_LEASES = 6
GONE = ("Z", "X")  # dead, though whoever started it has not taken note


def started_at_tick(pid: int) -> str:
    """When the kernel started a pid, or "" when there is none or it is dead: pids are given out again."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return "" if Path("/proc").exists() else _probe(pid)
    state, started = fields[0], fields[19]
    return "" if state in GONE else f"{boot}:{started}"


def _probe(pid: int) -> str:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        return "alive"  # somebody else's process, but there it is
    return "alive"


def register(process_id: str, role: str) -> None:
    ended = RuntimeProcess.objects.exclude(state=ProcessState.RUNNING)
    ended.filter(heartbeat_at__lt=timezone.now() - KEEP_ENDED).delete()
    RuntimeProcess.objects.create(
        id=process_id, host=HOST, pid=os.getpid(), pid_started=started_at_tick(os.getpid()), role=role
    )


def beat(process_id: str, active: int) -> None:
    RuntimeProcess.objects.filter(pk=process_id).update(heartbeat_at=timezone.now(), active_responses=active)


def retire(process_id: str) -> None:
    """An orderly end: what this process was working on is free for the next."""
    RuntimeProcess.objects.filter(pk=process_id).update(
        state=ProcessState.STOPPED, exit_reason="stopped", heartbeat_at=timezone.now(), active_responses=0
    )
    Response.objects.release([process_id], is_crash=False)


def find_dead() -> list[str]:
    """Processes that are gone without a word.

    Those of this host are known at once: their leases need not run out first. Others are known by
    their silence; one that only slept is fenced by the attempt when it wakes up.
    """
    silent_since = timezone.now() - timedelta(seconds=SILENT_LEASES * settings.HERMES_LEASE_SECS)
    running = RuntimeProcess.objects.filter(state=ProcessState.RUNNING)
    return [process.pk for process in running if _is_dead(process, silent_since)]


def _is_dead(process: RuntimeProcess, silent_since: datetime) -> bool:
    if process.host == HOST:
        return is_dead_here(process)
    return process.heartbeat_at < silent_since


def is_dead_here(process: RuntimeProcess) -> bool:
    """Of a process of this host."""
    try:
        return started_at_tick(process.pid) != process.pid_started
    except OSError:  # no descriptor is left to look with, which says nothing of the process
        return False


def bury(process_ids: list[str]) -> None:
    RuntimeProcess.objects.filter(pk__in=process_ids).update(
        state=ProcessState.LOST, exit_reason="the process is gone", active_responses=0
    )
    Response.objects.release(process_ids, is_crash=True)
