"""Access to the operators' pages: staff, by Django's login and permissions."""

from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from http.cookies import CookieError, SimpleCookie
from importlib import import_module
from typing import Any, Concatenate, ParamSpec, cast

from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.auth.models import AnonymousUser, User
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache

from responses_app.http.principals import DECIDE_PERMISSION, PLAYGROUND_PERMISSION

VIEW = "responses_app.view_response"
OPERATE = "responses_app.change_response"
DECIDE = DECIDE_PERMISSION
PLAYGROUND = PLAYGROUND_PERMISSION

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponseBase]


def staff_page(permission: str) -> Callable[[View[P]], View[P]]:
    """Lets staff with this permission in.

    ``staff_member_required`` would redirect the parts that htmx loads, and POSTs, to the login
    page; ``permission_required`` can't name the missing permission.
    """

    def decorate(view: View[P]) -> View[P]:
        @wraps(view)
        def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
            if not is_staff(request.user):
                return _login(request)
            if not request.user.has_perm(permission):
                return _forbidden(request, permission)
            return view(request, *args, **kwargs)

        return cast(View[P], never_cache(guarded))

    return decorate


def _login(request: HttpRequest) -> HttpResponseBase:
    """HX-Refresh reloads the whole page, and the reload leads to the login."""
    if "HX-Request" in request.headers:
        return HttpResponse(status=401, headers={"HX-Refresh": "true"})
    if request.method != "GET":
        return HttpResponse("Log in again.", status=401, content_type="text/plain")
    return redirect_to_login(request.get_full_path(), reverse("admin:login"))


def _forbidden(request: HttpRequest, permission: str) -> HttpResponseBase:
    message = (
        f"Your account lacks the permission {permission}. A superuser can grant it in the admin."
    )
    if request.method != "GET" or "HX-Request" in request.headers:
        return HttpResponse(message, status=403, content_type="text/plain")
    return render(
        request, "dashboard/missing.html", {"message": message, "title": "Not allowed"}, status=403
    )


def is_staff(user: Any) -> bool:
    return bool(user.is_active and user.is_staff)


def may_view(user: Any) -> bool:
    return is_staff(user) and bool(user.has_perm(VIEW))


def operator_of(request: HttpRequest) -> User:
    assert isinstance(request.user, User)
    return request.user


def user_of_cookies(header: str | None) -> User | AnonymousUser:
    """The user behind a Cookie header, where no middleware runs; Django checks the session."""
    session_key = None
    with suppress(CookieError):
        found = SimpleCookie(header or "").get(settings.SESSION_COOKIE_NAME)
        if found is not None:
            session_key = found.value
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    user = get_user(request)
    assert isinstance(user, User | AnonymousUser)
    return user
