"""Durations and counts as people read them.

``django.contrib.humanize`` has no durations, and its "1.2 million" is too wide for a column.
"""

from datetime import datetime, timedelta
from typing import Any

from django import template
from django.conf import settings
from django.utils import timezone

from gateway_app.operations.first_start import warning
from gateway_app.operations.model_banner import REAL_MODEL, has_demo_model

register = template.Library()
LONG = 100_000  # from here on, the last three digits are left out


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
    if isinstance(value, timedelta):
        value = value.total_seconds()
    secs = float(value)
    if secs < 60:
        return f"{secs:.1f} s"
    if secs < 3600:
        return f"{secs // 60:.0f} min {secs % 60:.0f} s"
    if secs < 86_400:
        return f"{secs // 3600:.0f} h {secs % 3600 // 60:.0f} min"
    return f"{secs // 86_400:.0f} d {secs % 86_400 // 3600:.0f} h"


@register.filter
def epoch_time(value: int) -> datetime:
    return datetime.fromtimestamp(value, timezone.get_current_timezone())


@register.filter
def count(value: int | None) -> str:
    """With narrow spaces between thousands; large numbers are shortened."""
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
    """Why a reboot may lose everything; empty while the server can write to its home."""
    if not settings.HERMES_DEGRADED:
        return ""
    return warning()


@register.inclusion_tag("dashboard/_demo_model.html")
def demo_model_notice() -> dict[str, Any]:
    """Answers of the built-in model look like those of a real one."""
    return {"has_demo_model": has_demo_model(), "lines": REAL_MODEL}
