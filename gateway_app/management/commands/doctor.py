from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from gateway_app.operations.doctor import checks as diagnosis
from gateway_app.operations.doctor import remote as diagnosis_remote
from gateway_app.operations.doctor.checks import Finding, Grade

TIMEOUT_SECS = 5.0


class Command(BaseCommand):
    help = "Check everything the server needs, one line each, with what to do about it."
    requires_system_checks = []  # they are part of what is told

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--timeout",
            type=float,
            default=TIMEOUT_SECS,
            help="seconds for each thing that is asked",
        )
        parser.add_argument(
            "--offline", action="store_true", help="ask no model, MCP server or channel layer"
        )

    def handle(self, *args: Any, timeout: float, offline: bool, **options: Any) -> None:
        failed = 0
        for finding in _findings(timeout, is_offline=offline):
            failed += finding.grade is Grade.FAIL
            remedy = f" -> {finding.remedy}" if finding.remedy else ""
            self.stdout.write(f"{finding.grade:<5}{finding.subject:<10}{finding.told}{remedy}")
        if failed:
            raise CommandError(f"{failed} of these must be mended.")


def _findings(timeout_secs: float, *, is_offline: bool) -> Iterator[Finding]:
    yield from diagnosis.check_settings()
    yield from diagnosis.check_home()
    yield from diagnosis.check_files()
    yield from diagnosis.check_open_files()
    yield from diagnosis.check_database()
    yield from diagnosis.check_sandbox()
    if not is_offline:
        yield from diagnosis_remote.check_upstreams(timeout_secs)
        yield from diagnosis_remote.check_mcp(timeout_secs)
        yield from diagnosis_remote.check_layer(timeout_secs)
