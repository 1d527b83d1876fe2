"""How far back the dashboard looks, and how fine."""

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
    kept_secs: int  # for how long numbers that were counted once are good enough

    @property
    def start(self) -> datetime:
        """On the edge of a slot, so that the first one is whole."""
        first = int(timezone.now().timestamp()) - self.secs
        return datetime.fromtimestamp(first - first % self.slot_secs, UTC)

    @property
    def slots(self) -> list[int]:
        """The epoch seconds at which each slot begins, up to now."""
        first, now = int(self.start.timestamp()), int(timezone.now().timestamp())
        return list(range(first, now + 1, self.slot_secs))


WINDOWS = {
    window.name: window
    for window in (
        Window("1h", "last hour", HOUR, MINUTE, 2),
        Window("24h", "last day", DAY, 20 * MINUTE, 10),
        Window("7d", "last week", 7 * DAY, 2 * HOUR, 60),
        Window("30d", "last 30 days", 30 * DAY, 8 * HOUR, 300),
    )
}
DEFAULT_WINDOW = WINDOWS["24h"]
