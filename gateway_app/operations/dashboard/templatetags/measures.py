"""Amounts as people read them."""

from datetime import datetime, timedelta

from django import template
from django.conf import settings
from django.utils import timezone

from gateway_app.operations.first_start import warning

register = template.Library()
LONG = 100_000
# Name, seconds, and up to how many of it.
UNITS = (("s", 1, 60), ("min", 60, 60), ("h", 3600, 48), ("d", 86_400, 0))


@register.filter
def milliseconds(value: int | None) -> str:
    if value is None:
        return "–"
    if value < 1000:
        return f"{value} ms"
    return duration(timedelta(milliseconds=value))


@register.filter
def duration(value: timedelta | float | None) -> str:
    if value is None:
        return "–"
    secs = value.total_seconds() if isinstance(value, timedelta) else float(value)
    if secs < 60:
        return f"{secs:.1f} s"
    if secs < 3600:
        return f"{secs // 60:.0f} min {secs % 60:.0f} s"
    if secs < 86_400:
        return f"{secs // 3600:.0f} h {secs % 3600 // 60:.0f} min"
    return f"{secs // 86_400:.0f} d {secs % 86_400 // 3600:.0f} h"


@register.filter
def ago(value: datetime | None) -> str:
    if value is None:
        return "–"
    secs = max(0.0, (timezone.now() - value).total_seconds())
    if secs < 10:
        return f"{secs:.1f} s ago"
    unit, size = next((each for each in UNITS if secs < each[1] * each[2]), UNITS[-1])[:2]
    return f"{secs / size:.0f} {unit} ago"


@register.filter
def epoch_time(value: int) -> datetime:
    return datetime.fromtimestamp(value, timezone.get_current_timezone())


@register.filter
def count(value: int | None) -> str:
    """With narrow spaces, and shortened where nobody reads the last digits."""
    if value is None:
        return "–"
    for unit, size in (("G", 10**9), ("M", 10**6)):
        if value >= size:
            return f"{value / size:.1f} {unit}"
    if value >= LONG:
        return f"{value / 1000:.0f} k"
    return f"{value:,}".replace(",", "\u202f")


@register.simple_tag
def degraded_warning() -> str:
    """Why everything may be gone after a reboot; empty when all is well."""
    return warning() if settings.HERMES_DEGRADED else ""
