import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db.models import Q
from django.utils import timezone

from gateway_app.models import ProcessState, RuntimeProcess
from gateway_app.runtime.processes import is_silent
from responses_app.management.examples import add_examples

LOOK_SECS = 0.5


class Command(BaseCommand):
    help = (
        "Take one process out: it takes no more requests and turns, and exits when its turns have "
        "ended. The others go on."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_examples(parser, "drain worker-2:4711 --wait 60")
        parser.add_argument("process", help="its id, or its host:pid, as the dashboard shows it")
        parser.add_argument(
            "--wait", type=float, default=0, metavar="SECS", help="seconds to wait for its exit"
        )

    def handle(self, *args: Any, process: str, wait: float, **options: Any) -> None:
        found = _find(process)
        if found is None:
            raise CommandError(f"No running process is {process!r}. {_running()}")
        rows = RuntimeProcess.objects.filter(pk=found.pk)
        rows.filter(drain_requested_at__isnull=True).update(drain_requested_at=timezone.now())
        self.stdout.write(f"{found} drains; it begins with its next heartbeat.")
        deadline = time.monotonic() + wait
        while wait and rows.filter(state=ProcessState.RUNNING).exists():
            if time.monotonic() > deadline:
                raise CommandError(f"{found} still works after {wait:g} s.")
            time.sleep(LOOK_SECS)
        if wait:
            self.stdout.write(f"{found} has ended.")


def _find(name: str) -> RuntimeProcess | None:
    host, _, pid = name.rpartition(":")
    is_named = Q(pk=name)
    if pid.isdecimal():
        is_named |= Q(host=host, pid=int(pid))
    running = RuntimeProcess.objects.filter(state=ProcessState.RUNNING).filter(is_named)
    found = list(running.exclude(is_silent())) or list(running)
    if len(found) > 1:  # containers may share a hostname, and each has the same pids
        ids = ", ".join(sorted(process.pk for process in found))
        raise CommandError(f"{len(found)} running processes are {name!r}. Use an id: {ids}.")
    return next(iter(found), None)


def _running() -> str:
    running = RuntimeProcess.objects.filter(state=ProcessState.RUNNING).order_by("role", "host")
    names = [f"{process.host}:{process.pid} ({process.role})" for process in running]
    if not names:
        return "None runs."
    return f"These run: {', '.join(names)}."
