"""``/`` and its parts: what the gateway does now, and what it did."""

from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_GET

from gateway_app.operations import health
from gateway_app.operations.dashboard import lists
from gateway_app.operations.dashboard.numbers import Point, numbers, percentile
from gateway_app.operations.dashboard.staff import VIEW, staff_page
from gateway_app.operations.dashboard.windows import DEFAULT_WINDOW, WINDOWS, Window
from gateway_app.operations.monitoring.remote import NOBODY, watch
from gateway_app.operations.monitoring.status import Local, gateway, local


@require_GET
@staff_page(VIEW)
def dashboard(request: HttpRequest) -> HttpResponseBase:
    window = _window(request)
    context = {"windows": WINDOWS.values(), "window": window, **_now(), **_past(window)}
    return render(request, "dashboard/dashboard.html", context | {"page": "dashboard"})


@require_GET
@staff_page(VIEW)
def now_part(request: HttpRequest) -> HttpResponseBase:
    return render(request, "dashboard/_now.html", _now())


@require_GET
@staff_page(VIEW)
def past_part(request: HttpRequest) -> HttpResponseBase:
    return render(request, "dashboard/_past.html", _past(_window(request)))


def _window(request: HttpRequest) -> Window:
    return WINDOWS.get(request.GET.get("window", ""), DEFAULT_WINDOW)


def _now() -> dict[str, Any]:
    found = health.look()
    return {
        "health": found,
        "gateway": _gateway(local(found.processes)),
        "open_responses": lists.open_responses(),
        "approvals": lists.waiting_approvals(),
        "sessions": lists.recent_sessions(),
    }


def _gateway(found: Local) -> dict[str, Any]:
    """As in /api/status, without waiting for a gateway elsewhere."""
    remote = watch.latest() if found.needs_probe else NOBODY
    return {**gateway(found, remote or NOBODY), "is_asked": remote is None}


def _past(window: Window) -> dict[str, Any]:
    counted = numbers(window)
    whole = counted.whole
    return {
        "window": window,
        "numbers": counted,
        "whole": {"point": whole, **_percentiles(whole)},
        "most_tokens": max((use.tokens for use in (*counted.by_model, *counted.by_key)), default=0),
        "most_calls": max((tool.calls for tool in counted.tools), default=0),
        "points": [
            {"point": point, **_percentiles(point)} for point in counted.points if point.ended
        ],
        "plots": _plots(counted.points),
        "slowest": lists.slowest(window),
        "failed": lists.failed(window),
    }


def _percentiles(point: Point) -> dict[str, int | None]:
    return {
        "first_p50": percentile(point.first_classes, 0.5),
        "first_p95": percentile(point.first_classes, 0.95),
        "total_p50": percentile(point.total_classes, 0.5),
        "total_p95": percentile(point.total_classes, 0.95),
    }


def _plots(points: list[Point]) -> dict[str, list[Any]]:
    """One list per line of a plot, all of the same length."""
    middle = [_percentiles(point) for point in points]
    secs = {
        name: [None if (ms := each[name]) is None else ms / 1000 for each in middle]
        for name in ("first_p50", "first_p95", "total_p50", "total_p95")
    }
    return {
        "at": [point.at for point in points],
        "ended": [point.ended for point in points],
        "failed": [point.failed for point in points],
        "error_percent": [point.error_percent for point in points],
        "input_tokens": [point.input_tokens for point in points],
        "output_tokens": [point.output_tokens for point in points],
        **secs,
    }
