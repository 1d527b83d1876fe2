"""Checks that query the database. They are not registered: only ``doctor`` runs them."""

import os
from collections.abc import Iterator

from django.conf import settings
from django.core import checks
from django.db import DatabaseError, connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from gateway_app.models import ProcessState, RuntimeProcess
from gateway_app.operations.doctor.messages import Ok
from gateway_app.operations.doctor.workspaces import check_workspaces
from gateway_app.runtime import recovery
from responses_app.database import READ_THREADS
from responses_app.models import Response
from responses_app.postgresql.threads import limit_waits

OLD_QUEUE_SECS = 60
OWN_CONNECTIONS = READ_THREADS + 2  # of the readers, the writer and health
RESERVED_CONNECTIONS = 3  # PostgreSQL keeps these for superusers


def check_database() -> Iterator[checks.CheckMessage]:
    limit_waits()  # a database that hangs is a finding
    try:
        missing = _missing_migrations()
    except DatabaseError as error:
        yield checks.Error(
            f"{connection.vendor}: {error}".strip(),
            hint="Check DATABASE_URL, and that the server runs.",
            obj="database",
            id="gateway_app.E011",
        )
        return
    if missing:
        yield checks.Error(
            f"{missing} migrations are missing",
            hint="Run manage.py migrate.",
            obj="database",
            id="gateway_app.E012",
        )
        return
    yield Ok("database", f"{connection.vendor}, up to date, can be written to")
    if connection.vendor == "postgresql":
        yield _check_connections()
    yield from _check_work()
    yield from check_workspaces()


def _missing_migrations() -> int:
    """Raises ``DatabaseError`` also where the database can be read and not written."""
    with transaction.atomic():
        executor = MigrationExecutor(connection)
        missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
        if not missing:
            RuntimeProcess.objects.create(
                id=f"doctor-{os.getpid()}", host="", pid=0, pid_started="", role="doctor"
            )
        transaction.set_rollback(True)
    return len(missing)


def _check_connections() -> checks.CheckMessage:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('max_connections')::int")
        allowed: int = cursor.fetchone()[0]
    needed = settings.HERMES_DATABASE_POOL + OWN_CONNECTIONS
    text = f"one process opens up to {needed} connections, PostgreSQL takes {allowed}"
    if needed + RESERVED_CONNECTIONS <= allowed:
        return Ok("database", text)
    return checks.Warning(
        text,
        hint="Lower HERMES_DATABASE_POOL, or raise max_connections.",
        obj="database",
        id="gateway_app.W013",
    )


def _check_work() -> Iterator[checks.CheckMessage]:
    dead = recovery.find_dead()
    left = recovery.find_interrupted(dead)
    processes = RuntimeProcess.objects.filter(state=ProcessState.RUNNING)
    running = processes.exclude(pk__in=dead.ids).count()
    if left:
        hint = "Run manage.py serve, or recover_responses."
        if running:
            hint = "The next sweep takes them."
        yield checks.Warning(
            f"{len(left)} responses were left by dead processes",
            hint=hint,
            obj="work",
            id="gateway_app.W014",
        )
    waiting = _longest_wait_secs()
    if waiting > OLD_QUEUE_SECS:
        yield checks.Warning(
            f"a response waits for {waiting} s",
            hint="Start manage.py serve, or raise HERMES_MAX_CONCURRENT.",
            obj="work",
            id="gateway_app.W015",
        )
    if not left and waiting <= OLD_QUEUE_SECS:
        yield Ok("work", f"nothing is left behind; {running} server processes run")


def _longest_wait_secs() -> int:
    """Of the responses that a process could take at once; others wait for an earlier turn."""
    ready = Response.objects.claimable("").order_by("created_at")
    first = ready.values_list("created_at", flat=True).first()
    if first is None:
        return 0
    return int((timezone.now() - first).total_seconds())
