"""Links from the dashboard's numbers to the admin's lists of what they count."""

from datetime import datetime, timedelta

from django import template

from gateway_app.operations.dashboard import addresses
from gateway_app.operations.dashboard.numbers import Numbers, Point
from gateway_app.operations.dashboard.templatetags.measures import epoch_time
from gateway_app.operations.dashboard.windows import Window

register = template.Library()


@register.simple_tag
def ended_list(numbers: Numbers, **filters: str) -> str:
    return addresses.responses_address(numbers.start, numbers.until, **filters)


@register.simple_tag
def slot_list(numbers: Numbers, window: Window, point: Point, **filters: str) -> str:
    """Of one slot of the plots; the last one is not over yet."""
    start: datetime = epoch_time(point.at)
    until = min(start + timedelta(seconds=window.slot_secs), numbers.until)
    return addresses.responses_address(start, until, **filters)


@register.simple_tag
def open_list(work: str, owner: str = "") -> str:
    if owner:
        return addresses.responses_address(None, None, work=work, owner=owner)
    return addresses.responses_address(None, None, work=work)


@register.simple_tag
def calls_list(numbers: Numbers, tool: str, *, is_failed: bool = False) -> str:
    return addresses.calls_address(numbers.start, numbers.until, tool, is_failed=is_failed)


@register.simple_tag
def waiting_calls_list() -> str:
    return addresses.waiting_calls_address()


@register.simple_tag
def processes_list() -> str:
    return addresses.processes_address()
