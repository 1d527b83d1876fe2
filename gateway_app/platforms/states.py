"""The state of each platform, for every process that asks: health, the dashboard, `doctor`."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.conf import settings
from django.db.models import Count, Q
from django.db.models.functions import Now
from django.utils import timezone

from gateway_app.platforms.adapter import AdapterHealth
from responses_app.database import database
from responses_app.models import (
    InboxMessage,
    InboxStatus,
    OutboxMessage,
    OutboxStatus,
    PlatformState,
    PlatformStatus,
)

REPORT_SECS = 10.0
SILENT_AFTER = timedelta(seconds=60)  # its process is gone


@dataclass(frozen=True)
class PlatformReport:
    """One platform as operators see it."""

    name: str
    state: str
    last_error: str
    last_error_at: datetime | None
    inbox_waiting: int
    inbox_failed: int
    outbox_waiting: int
    dead_letters: int
    pairing_code: str

    @property
    def is_ok(self) -> bool:
        is_connected = self.state == PlatformStatus.CONNECTED
        return is_connected and not self.dead_letters and not self.inbox_failed

    def public(self) -> dict[str, Any]:
        """Without errors, which may have numbers of people."""
        return {"state": self.state}

    def details(self) -> dict[str, Any]:
        at = self.last_error_at
        return {
            "state": self.state,
            "last_error": self.last_error or None,
            "last_error_at": at and at.isoformat(),
            "inbox": {"waiting": self.inbox_waiting, "failed": self.inbox_failed},
            "outbox": {"waiting": self.outbox_waiting, "dead": self.dead_letters},
        }


def platform_reports() -> list[PlatformReport]:
    """Of all platforms that are enabled; it queries the database."""
    names = list(settings.HERMES_PLATFORMS)
    if not names:
        return []
    states = PlatformState.objects.in_bulk(names)
    inbox = _counted(
        InboxMessage.objects.filter(platform__in=names),
        waiting=Q(closed_at__isnull=True),
        failed=Q(status=InboxStatus.FAILED),
    )
    outbox = _counted(
        OutboxMessage.objects.filter(platform__in=names),
        waiting=Q(closed_at__isnull=True),
        failed=Q(status=OutboxStatus.DEAD),
    )
    reports = []
    for name in names:
        state = states.get(name) or PlatformState(platform=name, reported_at=timezone.now())
        waiting, failed = inbox.get(name, (0, 0))
        unsent, dead = outbox.get(name, (0, 0))
        reports.append(_report(state, waiting, failed, unsent, dead))
    return reports


def _counted(rows: Any, waiting: Q, failed: Q) -> dict[str, tuple[int, int]]:
    """Only rows that are open or failed are read, by their indexes."""
    counts: dict[str, tuple[int, int]] = {}
    open_rows = dict(rows.filter(waiting).values_list("platform").annotate(Count("pk")))
    failed_rows = dict(rows.filter(failed).values_list("platform").annotate(Count("pk")))
    for name in open_rows.keys() | failed_rows.keys():
        counts[name] = (open_rows.get(name, 0), failed_rows.get(name, 0))
    return counts


def _report(
    state: PlatformState, waiting: int, failed: int, unsent: int, dead: int
) -> PlatformReport:
    status = str(state.status)
    if state.reported_at < timezone.now() - SILENT_AFTER:
        status = str(PlatformStatus.STOPPED)
    return PlatformReport(
        name=state.platform,
        state=status,
        last_error=state.error,
        last_error_at=state.error_at,
        inbox_waiting=waiting,
        inbox_failed=failed,
        outbox_waiting=unsent,
        dead_letters=dead,
        pairing_code=state.pairing_code,
    )


async def report_health(platform: str, health: AdapterHealth) -> None:
    fields: dict[str, Any] = {
        "status": health.status,
        "pairing_code": health.pairing_code,
        "reported_at": Now(),
    }
    if health.error:
        fields |= {"error": health.error, "error_at": Now()}
    await database.write(partial(_update, platform, fields))


async def note_outcome(platform: str, error: str = "") -> None:
    """Of a message that was sent, or that failed."""
    if error:
        fields = {"error": error, "error_at": Now()}
        await database.write_with_retry(partial(_update, platform, fields))


def _update(platform: str, fields: dict[str, Any]) -> None:
    PlatformState.objects.update_or_create(platform=platform, defaults=fields)


def stored_cursor(platform: str) -> str:
    found = PlatformState.objects.filter(platform=platform)
    return found.values_list("cursor", flat=True).first() or ""
