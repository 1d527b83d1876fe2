import asyncio
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, run_checks
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError

from gateway_app.config.models import describe
from gateway_app.operations.doctor.cluster import check_cluster
from gateway_app.operations.doctor.database import check_database
from gateway_app.operations.doctor.messages import Ok
from gateway_app.operations.doctor.model import (
    Candidate,
    UnknownProfile,
    find_candidate,
    recommended_lines,
    try_model,
)
from gateway_app.operations.doctor.model_trials import Finding
from gateway_app.operations.doctor.platforms import check_platforms
from gateway_app.operations.doctor.remote import (
    check_layer,
    check_mcp,
    check_upstreams,
    check_windows,
)
from gateway_app.providers.model_server import Report, ask_server
from responses_app.management.examples import add_examples

TIMEOUT_SECS = 5.0
MODEL_LIMIT_SECS = 300.0
OUR_IDS = "gateway_app."
# Django keeps its checks in a set, so their order changes from run to run.
REGISTERED_SUBJECTS = ("settings", "home", "files", "terminal")


class Command(BaseCommand):
    help = (
        "Check everything that the server needs. Each line has a finding and what to do about it."
    )
    requires_system_checks = []  # they are among those that the command prints

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_examples(parser, "doctor --offline", "doctor --model research")
        parser.add_argument(
            "--timeout", type=float, default=TIMEOUT_SECS, help="seconds for each server to answer"
        )
        parser.add_argument(
            "--offline", action="store_true", help="ask no model, MCP server or channel layer"
        )
        parser.add_argument(
            "--model",
            nargs="?",
            const="",
            metavar="PROFILE",
            help="instead, make one real call of each kind to the model (of a profile)",
        )
        parser.add_argument(
            "--limit",
            type=float,
            default=MODEL_LIMIT_SECS,
            help="seconds for all calls of --model together",
        )

    def handle(
        self,
        *args: Any,
        timeout: float,
        offline: bool,
        model: str | None,
        limit: float,
        **options: Any,
    ) -> None:
        if model is None:
            self._check(timeout, is_offline=offline)
        else:
            self._try_model(model, timeout, limit)

    def _check(self, timeout: float, *, is_offline: bool) -> None:
        failed = 0
        for message in _findings(timeout, is_offline=is_offline):
            grade = "note"
            if isinstance(message, Ok):
                grade = "ok"
            elif message.is_silenced():
                continue
            elif message.is_serious():
                grade = "FAIL"
                failed += 1
            self.stdout.write(f"{grade:<5}{_subject(message):<10}{_text(message)}")
        if failed:
            raise CommandError(f"{failed} checks failed; their lines name the remedies.")

    def _try_model(self, profile: str, timeout: float, limit: float) -> None:
        for message in check_database():  # profiles are rows
            if message.is_serious():
                raise CommandError(f"{_subject(message)}: {_text(message)}")
        try:
            candidate = find_candidate(profile)
        except (UnknownProfile, ImproperlyConfigured) as error:
            raise CommandError(str(error)) from error
        if candidate.model["provider"] == "builtin":
            raise CommandError(
                "The built-in demonstration model answers; there is nothing to try. "
                "Set HERMES_PROVIDER and HERMES_MODEL; docs/models.md has the lines."
            )
        self.stdout.write(f"Trying {describe(candidate.model)}")
        report = ask_server(candidate.model, timeout)
        failed = asyncio.run(self._trials(candidate, report, limit))
        lines = recommended_lines(candidate, report)
        if lines:
            self.stdout.write("Recommended in config.yaml, or in the admin for a profile there:")
            for line in lines:
                self.stdout.write(f"  {line}")
        if failed:
            raise CommandError("An agent can't work with this model; the FAIL line has the reason.")

    async def _trials(self, candidate: Candidate, report: Report, limit: float) -> int:
        failed = 0
        async with aclosing(try_model(candidate, report, limit, self._announce)) as findings:
            async for name, finding in findings:
                failed += finding.is_fatal
                self.stdout.write(f"{_grade(finding):<5}{name:<11}{_finding_text(finding)}")
                self.stdout.flush()
        return failed

    def _announce(self, name: str) -> None:
        self.stderr.write(f"... {name}")


def _grade(finding: Finding) -> str:
    if finding.works:
        return "ok"
    if finding.is_fatal:
        return "FAIL"
    return "note"


def _finding_text(finding: Finding) -> str:
    if not finding.advice:
        return finding.text
    return f"{finding.text} -> {finding.advice}"


def _findings(timeout_secs: float, *, is_offline: bool) -> Iterator[CheckMessage]:
    yield from _registered()
    is_database_fit = True
    for message in check_database():
        is_database_fit = is_database_fit and not message.is_serious()
        yield message
    if is_database_fit:
        yield from check_cluster()
    yield from check_platforms()
    if not is_offline:
        yield from check_upstreams(timeout_secs)
        yield from check_windows(timeout_secs)
        yield from check_mcp(timeout_secs)
        yield from check_layer(timeout_secs)


def _registered() -> list[CheckMessage]:
    """What all registered checks find, sorted by subject: Django's, libraries' and ours."""
    found = run_checks(include_deployment_checks=True)
    problems = [message for message in found if not _is_ours(message) and not message.is_silenced()]
    if not problems:
        address = f"{settings.API_SERVER_HOST}:{settings.API_SERVER_PORT}"
        found.append(Ok("settings", f"read, for {address}"))
    return sorted(found, key=_order)


def _order(message: CheckMessage) -> int:
    return REGISTERED_SUBJECTS.index(_subject(message))


def _is_ours(message: CheckMessage) -> bool:
    return isinstance(message, Ok) or str(message.id).startswith(OUR_IDS)


def _subject(message: CheckMessage) -> str:
    """Django's own checks are about settings; ours name their subject as their object."""
    if _is_ours(message):
        return str(message.obj)
    return "settings"


def _text(message: CheckMessage) -> str:
    if isinstance(message, Ok):
        return message.msg
    if _is_ours(message):
        return f"{message.msg} -> {message.hint}"
    hint = message.hint or "See the check's documentation."
    return f"{message.id}: {message.msg} -> {hint}"
