"""The spans of time that the dashboard shows, and the resolution of each."""

from dataclasses import dataclass
from datetime import UTC, datetime

from django.utils import timezone

MINUTE, HOUR, DAY = 60, 3600, 86_400


@dataclass(frozen=True)
class Window:
    name: str
    label: str
    secs: int
    slot_secs: int  # one point of a plot
    kept_secs: int  # how long its numbers are cached

    @property
    def start(self) -> datetime:
        """At the start of a slot, so that the first slot is complete."""
        first = int(timezone.now().timestamp()) - self.secs
        return datetime.fromtimestamp(first - first % self.slot_secs, UTC)

    @property
    def slots(self) -> list[int]:
        """The start of each slot, in epoch seconds, up to now."""
        first, now = int(self.start.timestamp()), int(timezone.now().timestamp())
        return list(range(first, now + 1, self.slot_secs))


WINDOWS = {
    "1h": Window("1h", "last hour", HOUR, MINUTE, 2),
    "24h": Window("24h", "last day", DAY, 20 * MINUTE, 10),
    "7d": Window("7d", "last week", 7 * DAY, 2 * HOUR, 60),
    "30d": Window("30d", "last 30 days", 30 * DAY, 8 * HOUR, 300),
}
DEFAULT_WINDOW = WINDOWS["24h"]
