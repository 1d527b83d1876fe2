"""What ``doctor`` looks at: each check says one thing, and what to do about it."""

import os
import platform
import shutil
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from django.conf import settings
from django.core import checks
from django.db import DatabaseError, connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from gateway_app.config.terminal_limits import Limits
from gateway_app.models import ProcessState, RuntimeProcess
from gateway_app.runtime import recovery
from gateway_app.server.limits import needed_files, reachable_files
from gateway_app.tools.support import seccomp
from gateway_app.tools.support.cgroups import usable_parents
from gateway_app.tools.support.limits import counts_processes
from gateway_app.tools.terminal import NO_SANDBOX, NO_SANDBOX_REMEDY, lacks_sandbox
from responses_app.database import READ_THREADS
from responses_app.models import Response
from responses_app.postgresql.threads import limit_waits

MIN_FREE_BYTES = 1024**3
SECRET_FILES = ("api_key", "secret_key", "admin_login", "config.yaml", "hermes.sqlite3")
OLD_QUEUE_SECS = 60
OWN_CONNECTIONS = READ_THREADS + 2  # of the readers, the writer and health
RESERVED_CONNECTIONS = 3  # PostgreSQL keeps these for superusers


class Grade(StrEnum):
    OK = "ok"
    NOTE = "note"  # works, but not as well as it could
    FAIL = "FAIL"


@dataclass(frozen=True)
class Finding:
    subject: str
    grade: Grade
    told: str
    remedy: str = ""


def ok(subject: str, told: str) -> Finding:
    return Finding(subject, Grade.OK, told)


def note(subject: str, told: str, remedy: str) -> Finding:
    return Finding(subject, Grade.NOTE, told, remedy)


def fail(subject: str, told: str, remedy: str) -> Finding:
    return Finding(subject, Grade.FAIL, told, remedy)


def check_settings() -> Iterator[Finding]:
    problems = [
        found
        for found in checks.run_checks(include_deployment_checks=True)
        if not found.is_silenced()
    ]
    for problem in problems:
        grade = Grade.FAIL if problem.is_serious() else Grade.NOTE
        yield Finding(
            "settings",
            grade,
            f"{problem.id}: {problem.msg}",
            problem.hint or "See the check's documentation.",
        )
    if not problems:
        yield ok("settings", f"read, for {settings.API_SERVER_HOST}:{settings.API_SERVER_PORT}")
    if settings.HERMES_AUTH == "off":
        yield note(
            "settings", "HERMES_AUTH=off lets everybody on this machine in", "Remove HERMES_AUTH."
        )


def check_home() -> Iterator[Finding]:
    home: Path = settings.HERMES_HOME
    if stat.S_IMODE(home.stat().st_mode) & 0o077:
        yield note("home", f"others may look into {home}", f"chmod 700 {home}")
    probe = home / f".doctor-{os.getpid()}"
    try:
        probe.touch()
        probe.unlink()
    except OSError as error:
        yield fail(
            "home",
            f"cannot write to {home}: {error.strerror}",
            f"chown or chmod {home} for the server's user",
        )
        return
    free = shutil.disk_usage(home).free
    told = f"{home} can be written to, {free // 1024**2} MiB free"
    yield (
        ok("home", told)
        if free >= MIN_FREE_BYTES
        else note("home", told, "Make room, or see prune_responses.")
    )


def check_files() -> Iterator[Finding]:
    present = [path for name in SECRET_FILES if (path := settings.HERMES_HOME / name).exists()]
    is_home_closed = not stat.S_IMODE(settings.HERMES_HOME.stat().st_mode) & 0o077
    opened = [path for path in present if stat.S_IMODE(path.stat().st_mode) & 0o077]
    if is_home_closed:  # nobody gets to what lies inside
        opened = [path for path in opened if path.name in ("api_key", "secret_key", "admin_login")]
    for path in opened:
        yield fail("files", f"others may read {path.name}", f"chmod 600 {path}")
    if not opened:
        yield ok("files", f"{len(present)} files with secrets, closed to others")


def check_database() -> Iterator[Finding]:
    limit_waits()  # a database that hangs is a finding
    try:
        with transaction.atomic():
            executor = MigrationExecutor(connection)
            missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
            if not missing:
                RuntimeProcess.objects.create(
                    id=f"doctor-{os.getpid()}", host="", pid=0, pid_started="", role="doctor"
                )
            transaction.set_rollback(True)
    except DatabaseError as error:
        yield fail(
            "database",
            f"{connection.vendor}: {error}".strip(),
            "Check DATABASE_URL, and that the server runs.",
        )
        return
    if missing:
        yield fail("database", f"{len(missing)} migrations are missing", "Run manage.py migrate.")
        return
    yield ok("database", f"{connection.vendor}, up to date, can be written to")
    yield from _check_connections()
    yield from _check_work()


def _check_connections() -> Iterator[Finding]:
    if connection.vendor != "postgresql":
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('max_connections')::int")
        allowed: int = cursor.fetchone()[0]
    needed = settings.HERMES_DATABASE_POOL + OWN_CONNECTIONS
    text = f"one process opens up to {needed} connections, PostgreSQL takes {allowed}"
    if needed + RESERVED_CONNECTIONS <= allowed:
        yield ok("database", text)
    else:
        yield note("database", text, "Lower HERMES_DATABASE_POOL, or raise max_connections.")


def _check_work() -> Iterator[Finding]:
    dead = recovery.find_dead()
    left = recovery.find_interrupted(dead)
    running = (
        RuntimeProcess.objects.filter(state=ProcessState.RUNNING).exclude(pk__in=dead.ids).count()
    )
    if left:
        remedy = (
            "The next sweep takes them."
            if running
            else "Run manage.py serve, or recover_responses."
        )
        yield note("work", f"{len(left)} responses were left by dead processes", remedy)
    now = timezone.now()
    ready = Response.objects.claimable("").order_by(
        "created_at"
    )  # others wait for a turn, not for a process
    first = ready.values_list("created_at", flat=True).first()
    waiting = 0 if first is None else int((now - first).total_seconds())
    if waiting > OLD_QUEUE_SECS:
        yield note(
            "work",
            f"a response waits for {waiting} s",
            "Start manage.py serve, or raise HERMES_MAX_CONCURRENT.",
        )
    if not left and waiting <= OLD_QUEUE_SECS:
        yield ok("work", f"nothing is left behind; {running} server processes run")


def check_open_files() -> Iterator[Finding]:
    needed, reachable = needed_files(), reachable_files()
    text = f"{settings.HERMES_MAX_CONNECTIONS} connections and the rest need {needed} open files"
    if reachable >= needed:
        yield ok("files", text)
    else:
        remedy = "Raise the hard limit (LimitNOFILE, ulimit -Hn), or lower HERMES_MAX_CONNECTIONS."
        yield note("files", f"{text}, and the limit is {reachable}", remedy)


def check_sandbox() -> Iterator[Finding]:
    mode = settings.HERMES_TERMINAL
    if mode == "off":
        yield ok("terminal", "off: the agent has no terminal")
    elif mode == "unsandboxed":
        yield note(
            "terminal",
            "commands run with the rights of the server",
            "Set HERMES_TERMINAL=sandboxed.",
        )
    elif lacks_sandbox(mode):
        yield fail("terminal", f"{NO_SANDBOX}: there is no terminal", NO_SANDBOX_REMEDY)
    else:
        yield from _check_limits(settings.HERMES_TERMINAL_LIMITS)


def _check_limits(limits: Limits) -> Iterator[Finding]:
    network = "with the network of the machine" if limits.has_network else "without network"
    yield ok("terminal", f"commands run in bubblewrap, {network}")
    yield ok(
        "terminal",
        f"each process has up to {limits.memory_mb} MB of memory, {limits.cpu_secs} s of processor time, "
        f"files of {limits.file_mb} MB and {limits.open_files} of them open",
    )
    parents = usable_parents()
    remedy = "See docs/tools.md, limits: delegate a control group to the server."
    if parents is not None:
        text = f"each command has up to {limits.memory_mb} MB of memory and {limits.processes} processes"
        yield ok("terminal", f"{text} (control groups, version {parents.version})")
    elif counts_processes():
        text = f"each command has up to {limits.processes} processes, and no limit of its memory in total"
        yield note("terminal", text, remedy)
    else:
        yield note(
            "terminal",
            "commands have no limit of their processes, nor of their memory in total",
            remedy,
        )
    if seccomp.is_available():
        yield ok("terminal", "a filter refuses dangerous system calls")
    else:
        yield note(
            "terminal",
            f"there is no filter of system calls for {platform.machine()}",
            "Use x86_64 or aarch64.",
        )


def timed(started: float) -> str:
    return f"{(time.monotonic() - started) * 1000:.0f} ms"
