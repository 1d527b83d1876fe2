"""The frame of every page: the header, and times for the reader's zone."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django import template
from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest
from django.template import RequestContext
from django.urls import reverse
from django.utils.safestring import SafeString

from gateway_app.operations.dashboard.staff import PLAYGROUND, VIEW, is_staff
from responses_app.admin.bidirectional import escaped
from responses_app.admin.times import relative_time, time_element

register = template.Library()
DOCS = "/docs"


@dataclass(frozen=True)
class PageLink:
    title: str
    address: str
    current: str = ""  # the value of aria-current: "page", "true" for a page below it, or none


@register.inclusion_tag("dashboard/_header.html", takes_context=True)
def site_header(context: RequestContext) -> dict[str, Any]:
    """Links to the pages that the user may open. Without a login that is the API alone."""
    request: HttpRequest = context["request"]
    user = getattr(request, "user", None) or AnonymousUser()
    links = _links(request, user)
    login = reverse("admin:login")
    return {
        "links": links,
        "home": links[0].address,
        "user": user,
        "login": login,
        "is_login": request.path == login,
    }


def _links(request: HttpRequest, user: Any) -> list[PageLink]:
    links = []
    if is_staff(user):
        may_view = user.has_perm(VIEW)
        if may_view:
            links.append(_link(request, "Dashboard", reverse("dashboard"), "/live/"))
        if user.has_perm(PLAYGROUND):
            links.append(_link(request, "Playground", reverse("chat"), "/chat/"))
        if may_view and settings.HERMES_PLATFORMS:
            links.append(_link(request, "Platforms", reverse("platforms")))
        index = reverse("admin:index")
        links.append(_link(request, "Admin", index, index))
    links.append(_link(request, "API docs", DOCS))
    return links


def _link(request: HttpRequest, title: str, address: str, below: str = "") -> PageLink:
    if request.path == address:
        return PageLink(title, address, "page")
    if below and request.path.startswith(below):
        return PageLink(title, address, "true")
    return PageLink(title, address)


@register.filter
def reader_time(at: datetime | None) -> SafeString | str:
    """UTC, which the script of the frame turns into the reader's zone."""
    return time_element(at)


@register.filter
def time_ago(at: datetime | None) -> SafeString | str:
    return relative_time(at)


@register.filter
def in_words(name: str) -> str:
    """A status or a kind as people write it."""
    return name.replace("_", " ")


@register.filter
def in_order(text: str) -> str:
    """Without characters that would show the text in another order than it has."""
    return escaped(text)
