"""Checks of the messaging platforms that are enabled."""

import shutil
from collections.abc import Iterator

from django.conf import settings
from django.core import checks
from django.db import Error

from gateway_app.config.platforms import PlatformConfig
from gateway_app.operations.doctor.messages import Ok
from gateway_app.platforms.admission import owner_of
from gateway_app.platforms.registry import adapters
from gateway_app.platforms.states import PlatformReport, platform_reports
from responses_app.models import PlatformStatus
from responses_app.protocol.errors import ApiError

SUBJECT = "platforms"


def check_platforms() -> Iterator[checks.CheckMessage]:
    if not settings.HERMES_PLATFORMS:
        return
    try:
        reports = {report.name: report for report in platform_reports()}
    except Error:  # another check reports the database
        return
    for name, adapter in adapters().items():
        found = [*_problems(adapter.config, is_polled=adapter.is_polled), *_state(reports[name])]
        if found:
            yield from found
        else:
            yield Ok(SUBJECT, f"{name} is connected, and no message is left behind")


def _problems(config: PlatformConfig, *, is_polled: bool) -> Iterator[checks.CheckMessage]:
    try:
        owner_of(config)
    except ApiError as error:
        yield _error(error.message, "Name an active user as its owner in config.yaml.", "E030")
    if is_polled and shutil.which("node") is None:
        yield _error(f"{config.name} needs Node.js", "apt-get install nodejs", "E031")
    if not is_polled and not config.allowed_senders:
        yield _warning(
            f"{config.name} answers no message",
            "List the senders in allowed_senders of its section in config.yaml.",
            "W032",
        )


def _state(report: PlatformReport) -> Iterator[checks.CheckMessage]:
    if report.state != PlatformStatus.CONNECTED:
        error = ""
        if report.last_error:
            error = f" ({report.last_error})"
        yield _warning(
            f"{report.name} is {report.state}{error}",
            "Start manage.py serve, and for a bridge manage.py runplatform; pair it at /platforms.",
            "W033",
        )
    if report.dead_letters or report.inbox_failed:
        yield _warning(
            f"{report.name} has {report.dead_letters} dead letters and "
            f"{report.inbox_failed} messages that were not admitted",
            "Look at the outbox and the inbox in the admin, and try them again there.",
            "W034",
        )


def _error(text: str, hint: str, number: str) -> checks.CheckMessage:
    return checks.Error(text, hint=hint, obj=SUBJECT, id=f"gateway_app.{number}")


def _warning(text: str, hint: str, number: str) -> checks.CheckMessage:
    return checks.Warning(text, hint=hint, obj=SUBJECT, id=f"gateway_app.{number}")
