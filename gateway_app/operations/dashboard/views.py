"""The dashboard, ``/``, and the parts that it refreshes: the present, and a window of time."""

from collections import defaultdict
from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_GET

from gateway_app.operations import health
from gateway_app.operations.dashboard import lists
from gateway_app.operations.dashboard.checks import findings
from gateway_app.operations.dashboard.numbers import Point, numbers, percentile
from gateway_app.operations.dashboard.staff import VIEW, staff_page
from gateway_app.operations.dashboard.windows import DEFAULT_WINDOW, WINDOWS, Window
from gateway_app.operations.monitoring.remote import UNREACHABLE, Remote, watch
from gateway_app.operations.monitoring.status import Local, gateway, local


@require_GET
@staff_page(VIEW)
def dashboard(request: HttpRequest) -> HttpResponseBase:
    window = _window(request)
    context = {"page": "dashboard", "windows": WINDOWS.values()} | _now() | _past(window)
    return render(request, "dashboard/dashboard.html", context)


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
        "findings": findings(found),
        "passed_count": len(found.checks) - len(found.degraded),
        "gateway": _gateway(local(found.processes)),
        "open_responses": lists.open_responses(),
        "approvals": lists.waiting_approvals(),
        "approval_count": lists.count_approvals(),
        "sessions": lists.recent_sessions(),
    }


def _gateway(found: Local) -> dict[str, Any]:
    """As in /api/status, but a page does not wait for a gateway on another host."""
    remote: Remote | None = UNREACHABLE
    if found.needs_probe:
        remote = watch.latest()
    return gateway(found, remote or UNREACHABLE) | {"is_unknown": remote is None}


def _past(window: Window) -> dict[str, Any]:
    counted = numbers(window)
    tokens = [use.tokens for use in counted.by_model + counted.by_key]
    calls = [tool.calls for tool in counted.tools]
    return {
        "window": window,
        "numbers": counted,
        "whole": _with_percentiles(counted.whole),
        "most_tokens": max(tokens, default=0),
        "most_calls": max(calls, default=0),
        "points": [_with_percentiles(point) for point in counted.points if point.ended],
        "plots": _plots(counted.points) | {"slot_secs": window.slot_secs},
        "slowest": lists.slowest(window),
        "failed": lists.failed(window),
    }


def _with_percentiles(point: Point) -> dict[str, Any]:
    return {
        "point": point,
        "first_p50": percentile(point.first_classes, 0.5),
        "first_p95": percentile(point.first_classes, 0.95),
        "total_p50": percentile(point.total_classes, 0.5),
        "total_p95": percentile(point.total_classes, 0.95),
    }


def _plots(points: list[Point]) -> dict[str, Any]:
    """One list per line of a plot, all of the same length."""
    plots: dict[str, list[Any]] = defaultdict(list)
    for point in points:
        plots["at"].append(point.at)
        plots["ended"].append(point.ended)
        plots["failed"].append(point.failed)
        plots["error_percent"].append(point.error_percent)
        plots["input_tokens"].append(point.input_tokens)
        plots["output_tokens"].append(point.output_tokens)
        for name, value in _with_percentiles(point).items():
            if name != "point":
                plots[name].append(_secs(value))
    return dict(plots)


def _secs(ms: int | None) -> float | None:
    if ms is None:
        return None
    return ms / 1000
