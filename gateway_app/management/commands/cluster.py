import os
import signal
import time
from argparse import ArgumentParser
from pathlib import Path
from types import FrameType
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from gateway_app.config.models import describe
from gateway_app.config.network import is_loopback
from gateway_app.management.local_cluster.engines import default_data
from gateway_app.management.local_cluster.supervisor import Supervisor
from gateway_app.operations.first_start import greeting
from responses_app.management.examples import add_examples

ECHO_SECS = 1.0  # make sends a signal again that its whole group has got
MAX_PROCESSES = 64


class Command(BaseCommand):
    help = (
        "Run web processes and workers behind nginx on this machine, with PostgreSQL and Redis. "
        "Ctrl-C stops all of them."
    )
    requires_system_checks = []  # the processes that it starts have their own database

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_examples(parser, "cluster --web 2 --workers 4")
        parser.add_argument("--web", type=_count, default=2, help="web processes (default 2)")
        parser.add_argument("--workers", type=_count, default=2, help="workers (default 2)")
        parser.add_argument(
            "--data", type=Path, help="the folder of the database, unless DATABASE_URL is set"
        )

    def handle(self, *args: Any, web: int, workers: int, data: Path | None, **options: Any) -> None:
        _check_settings()
        home: Path = settings.HERMES_HOME
        folder = (data or default_data(home)).absolute()
        supervisor = Supervisor(web, workers, folder, self._report)
        interruptions = Interruptions()
        interruptions.install()
        try:
            supervisor.start()
            model = describe(settings.HERMES_MODELS[0])
            self._report(greeting(f"  model        {model}", shows_secrets=False))
            self._report("Ctrl-C stops all.")
            supervisor.watch_forever()
        except KeyboardInterrupt:
            self._report("Stopping all; once more ends them at once ...")
        finally:
            self._stop(supervisor)

    def _stop(self, supervisor: Supervisor) -> None:
        try:
            supervisor.stop()
        except KeyboardInterrupt:
            supervisor.kill()
        self._report("All have ended.")

    def _report(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()


class Interruptions:
    """Ctrl-C and SIGTERM raise KeyboardInterrupt, and the echo of a signal nothing."""

    def __init__(self) -> None:
        self._came_at: float | None = None

    def install(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._handle)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self._came_at is not None and now - self._came_at < ECHO_SECS:
            return
        self._came_at = now
        raise KeyboardInterrupt


def _check_settings() -> None:
    is_given = "DATABASE_URL" in os.environ or "DATABASE_URL_FILE" in os.environ
    if is_given and connection.vendor != "postgresql":
        raise CommandError(
            "DATABASE_URL names SQLite, which serves one machine. "
            "Name a PostgreSQL database, or leave it unset to have one started."
        )
    if not is_loopback(settings.API_SERVER_HOST):
        raise CommandError(
            "This cluster is for one machine, and listens on 127.0.0.1 only: unset API_SERVER_HOST."
        )


def _count(text: str) -> int:
    count = int(text)
    if not 1 <= count <= MAX_PROCESSES:
        raise ValueError
    return count
