"""``/platforms``: the state of each messaging platform, and the code that pairs it."""

from dataclasses import dataclass

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_GET

from gateway_app.operations.dashboard.staff import OPERATE, VIEW, staff_page
from gateway_app.platforms.pairing_code import svg_path
from gateway_app.platforms.states import PlatformReport, platform_reports


@dataclass(frozen=True)
class PairingCode:
    path: str  # of an SVG image
    side: int


@require_GET
@staff_page(VIEW)
def platforms_page(request: HttpRequest) -> HttpResponseBase:
    """A paired device reads all chats of the account: only operators see its code."""
    reports = platform_reports()
    codes = []
    for report in reports:
        codes.append((report, _code(report, may_pair=request.user.has_perm(OPERATE))))
    context = {"page": "platforms", "platforms": codes}
    return render(request, "dashboard/platforms.html", context)


def _code(report: PlatformReport, *, may_pair: bool) -> PairingCode | None:
    if not report.pairing_code or not may_pair:
        return None
    path, side = svg_path(report.pairing_code)
    return PairingCode(path, side)
