"""The state of the gateway, for ``/health/detailed`` and the dashboard."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import chain
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import Case, Count, Min, Value, When
from django.utils import timezone

from gateway_app.models import ProcessState, RuntimeProcess
from gateway_app.operations.cluster import (
    Cluster,
    Waiting,
    gateway_check,
    read_waiting,
    secrets_check,
    summarise,
    workers_check,
)
from gateway_app.operations.database_probe import TROUBLE, ask
from gateway_app.operations.health_checks import (
    DEGRADED,
    OK,
    check,
    layer_check,
    model_check,
    terminal_check,
)
from gateway_app.platforms.states import PlatformReport, platform_reports
from gateway_app.runtime.mcp import mcp_states
from gateway_app.runtime.processes import is_dead_here, is_here, is_silent
from gateway_app.runtime.roles import Role
from gateway_app.runtime.shared_secrets import secrets_digest
from responses_app.database import database
from responses_app.http.request_gate import request_gate
from responses_app.models import Response, work_states

QUEUE_AGE_SECS = 60  # work that a free process takes at once has waited too long by then
DISK_PERCENT = 90
SHOWN_PROCESSES = 12
SHOWN_NEWER = 20
API_SERVER = {"api_server": {"state": "connected"}}
LAG_SECS = 5  # a commit takes milliseconds, or longer while another process holds the lock


@dataclass(frozen=True)
class Work:
    """The responses that have not ended."""

    running: int
    queued: int
    awaiting_approval: int
    oldest_queued_secs: float | None
    oldest_ready_secs: float | None  # of those that wait for a process, not for an earlier turn


@dataclass(frozen=True)
class Process:
    id: str
    role: str
    host: str
    pid: int
    state: str
    active_responses: int
    started_at: datetime
    heartbeat_at: datetime
    exit_reason: str
    is_silent: bool
    is_alive_here: bool  # runs, and this host knows its pid
    version: str
    is_draining: bool
    lag_ms: int
    has_other_secrets: bool

    @property
    def is_gateway(self) -> bool:
        """Not of a process that only shows the gateway of another one."""
        return self.role != Role.PAGES

    @property
    def is_live(self) -> bool:
        return self.state == ProcessState.RUNNING and not self.is_silent


@dataclass(frozen=True)
class Storage:
    database_bytes: int | None
    disk_free_bytes: int
    disk_used_percent: float


def current_work() -> Work:
    now = timezone.now()
    states = work_states()
    found = Response.objects.open().aggregate(
        running=Count("pk", filter=states["running"]),
        parked=Count("pk", filter=states["awaiting_approval"]),
        queued=Count("pk", filter=states["queued"]),
        oldest=Min("created_at", filter=states["queued"]),
    )
    ready = Response.objects.claimable("").aggregate(oldest=Min("created_at"))
    return Work(
        running=found["running"],
        queued=found["queued"],
        awaiting_approval=found["parked"],
        oldest_queued_secs=_age(found["oldest"], now),
        oldest_ready_secs=_age(ready["oldest"], now),
    )


def newer_logs() -> list[str]:
    """Responses that only a newer version of this server can continue."""
    waiting = Response.objects.open().in_newer_format().order_by("created_at")
    return list(waiting.values_list("pk", flat=True)[:SHOWN_NEWER])


def _age(since: datetime | None, now: datetime) -> float | None:
    if since is None:
        return None
    return max(0.0, round((now - since).total_seconds(), 3))  # the clocks of hosts differ


def processes() -> list[Process]:
    """The running processes, then those that ended last."""
    silence = Case(When(is_silent(), then=Value(True)), default=Value(False))
    rows = RuntimeProcess.objects.annotate(silence=silence).order_by("-heartbeat_at")
    running = rows.filter(state=ProcessState.RUNNING)
    ended = rows.exclude(state=ProcessState.RUNNING)[:SHOWN_PROCESSES]
    return [_process(row) for row in chain(running, ended)]


def _process(row: RuntimeProcess) -> Process:
    is_running = row.state == ProcessState.RUNNING
    return Process(
        id=row.pk,
        role=row.role,
        host=row.host,
        pid=row.pid,
        state=row.state,
        active_responses=row.active_responses,
        started_at=row.started_at,
        heartbeat_at=row.heartbeat_at,
        exit_reason=row.exit_reason,
        is_silent=is_running and row.silence,  # type: ignore[attr-defined]
        is_alive_here=is_running and is_here(row) and not is_dead_here(row),
        version=row.version,
        is_draining=row.is_draining,
        lag_ms=row.lag_ms,
        has_other_secrets=row.secrets_digest not in ("", secrets_digest()),
    )


def storage(database_bytes: int | None) -> Storage | None:
    try:
        disk = shutil.disk_usage(settings.HERMES_HOME)
    except OSError:
        return None
    return Storage(database_bytes, disk.free, round(100 * disk.used / disk.total, 1))


def _database_bytes() -> int:
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT pg_database_size(current_database())")
        else:
            cursor.execute(
                "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
            )
        return int(cursor.fetchone()[0])


@dataclass(frozen=True)
class Health:
    """Everything at one moment; None where the database or the disk did not answer."""

    work: Work | None
    processes: list[Process] | None
    storage: Storage | None
    mcp: list[dict[str, Any]]
    checks: dict[str, dict[str, Any]]
    platforms: list[PlatformReport] = field(default_factory=list)
    cluster: Cluster | None = None

    @property
    def status(self) -> str:
        if self.degraded:
            return DEGRADED
        return OK

    @property
    def degraded(self) -> list[str]:
        return [name for name, check in self.checks.items() if check["status"] != OK]

    @property
    def running_processes(self) -> list[Process]:
        known = [process for process in self.processes or [] if process.is_gateway]
        return [process for process in known if process.state == ProcessState.RUNNING]


@dataclass(frozen=True)
class Stored:
    """What the database knows; ``trouble`` is the error where it did not answer."""

    work: Work | None = None
    processes: list[Process] | None = None
    database_bytes: int | None = None
    newer_logs: list[str] | None = None
    platforms: list[PlatformReport] = field(default_factory=list)
    waiting: Waiting | None = None
    trouble: str = ""


def read_stored() -> Stored:
    return Stored(
        current_work(),
        processes(),
        _database_bytes(),
        newer_logs(),
        platform_reports(),
        read_waiting(),
    )


def look() -> Health:
    """For a page that queries the database itself."""
    return _assess_found(read_stored)


def look_soon() -> Health:
    """For monitors: returns within two seconds, with or without the database."""
    return _assess_found(partial(ask, read_stored))


def _assess_found(read: Callable[[], Stored]) -> Health:
    try:
        return assess(read())
    except TROUBLE as error:
        return assess(Stored(trouble=str(error) or type(error).__name__))


def assess(found: Stored) -> Health:
    stored = storage(found.database_bytes)
    states = [dict(state) for state in mcp_states()]
    writer = database.writer
    checks = {
        "state_db": check(not found.trouble, error=found.trouble or None),
        "home": check(not settings.HERMES_DEGRADED, error=settings.HERMES_DEGRADED or None),
        "layer": layer_check(),
        "model": model_check(),
        "disk": check(
            stored is not None and stored.disk_used_percent < DISK_PERCENT,
            used_percent=stored and stored.disk_used_percent,
        ),
        "gateway": gateway_check(found.processes),
        "workers": workers_check(found.processes),
        "secrets": secrets_check(found.processes),
        "background_queues": _queue_check(found.work),
        "writer": check(
            writer.is_running and not writer.is_congested and writer.lag_secs < LAG_SECS,
            lag_secs=round(writer.lag_secs, 3),
            pending_bytes=writer.pending_bytes,
        ),
        "log_formats": check(found.newer_logs == [], newer=found.newer_logs),
        "terminal": terminal_check(),
        "mcp": check(all(state["state"] != "down" for state in states), servers=len(states)),
        "platforms": _platforms_check(found.platforms),
    }
    cluster = None
    if found.processes is not None and found.waiting is not None:
        cluster = summarise(found.processes, found.waiting)
    return Health(found.work, found.processes, stored, states, checks, found.platforms, cluster)


def _queue_check(work: Work | None) -> dict[str, Any]:
    if work is None:
        return check(False, queued=None, oldest_secs=None)
    is_taken_in_time = (work.oldest_ready_secs or 0) < QUEUE_AGE_SECS
    return check(is_taken_in_time, queued=work.queued, oldest_secs=work.oldest_queued_secs)


def _platforms_check(reports: list[PlatformReport]) -> dict[str, Any]:
    troubled = [report.name for report in reports if not report.is_ok]
    return check(not troubled, enabled=len(reports), troubled=troubled)


def living_state() -> str:
    if request_gate.is_closed:
        return "draining"
    return "running"
