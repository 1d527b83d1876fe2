"""Who may see the operators' pages: staff, by Django's own login."""

from collections.abc import Callable
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
from django.urls import reverse
from django.views.decorators.cache import never_cache

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponseBase]


def staff_page(view: View[P]) -> View[P]:
    """A page: strangers are sent to the login, and a part of a page asks for its page again."""

    @wraps(view)
    def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        if is_staff(request.user):
            return view(request, *args, **kwargs)
        if "HX-Request" in request.headers:
            return HttpResponse(status=401, headers={"HX-Refresh": "true"})
        if request.method != "GET":
            return HttpResponse("Log in again.", status=401, content_type="text/plain")
        return redirect_to_login(request.get_full_path(), reverse("admin:login"))

    return cast(View[P], never_cache(guarded))


def is_staff(user: Any) -> bool:
    return bool(user.is_active and user.is_staff)


def operator_of(request: HttpRequest) -> User:
    assert isinstance(request.user, User)
    return request.user


def user_of_cookies(header: str | None) -> User | AnonymousUser:
    """The user behind a Cookie header, where no middleware runs; Django checks the session as on any page."""
    try:
        found = SimpleCookie(header or "").get(settings.SESSION_COOKIE_NAME)
    except CookieError:
        found = None
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(found.value if found else None)
    user = get_user(request)
    assert isinstance(user, User | AnonymousUser)
    return user
