"""An operator's browser, without the browser: logs in, follows links, presses buttons."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
from django.contrib.admin.utils import quote

from tests.support.server import NO_TLS, Server

RESPONSES = "/admin/responses_app/response/"
SESSIONS = "/admin/responses_app/session/"


class Operator:
    def __init__(self, client: httpx.Client) -> None:
        self.client = client

    def page(self, path: str, **params: str) -> str:
        answer = self.client.get(path, params=params or None)
        assert answer.status_code == 200, (path, answer.status_code, answer.text[:2000])
        return answer.text

    def post(self, path: str, at: str | None = None, **fields: str | list[str]) -> httpx.Response:
        """Send a form as the page at ``at`` would."""
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', self.page(at or path))
        assert token is not None, path
        origin = str(self.client.base_url).rstrip("/")
        data = {"csrfmiddlewaretoken": token[1], **fields}
        return self.client.post(path, data=data, headers={"Referer": f"{origin}{path}"})

    def act(self, path: str, action: str, *keys: str, **more: str) -> httpx.Response:
        answer = self.post(path, action=action, _selected_action=list(keys), **more)
        assert answer.status_code == 200, answer.text[:2000]
        return answer


@contextmanager
def logged_in(server: Server, name: str = "", password: str = "") -> Iterator[Operator]:
    if not name:
        name, password = (server.home / "admin_login").read_text().split()
    with httpx.Client(base_url=server.url, follow_redirects=True, timeout=30, verify=NO_TLS) as client:
        operator = Operator(client)
        answer = operator.post("/admin/login/", username=name, password=password, next="/admin/")
        assert "Site administration" in answer.text
        yield operator


def page_messages(page: httpx.Response) -> str:
    """The messages on top of a page."""
    return " ".join(re.findall(r'<li class="(?:success|warning|error|info)">(.*?)</li>', page.text, re.DOTALL))


def response_page(response_id: str) -> str:
    return f"{RESPONSES}{quote(response_id)}/change/"


def session_page(operator: Operator, public_id: str) -> str:
    """Its address, found as an operator would."""
    found = re.findall(rf'href="({SESSIONS}\d+/change/)[^"]*"', operator.page(SESSIONS, q=public_id))
    assert found, public_id
    return str(found[0])


STAFF_PASSWORD = "a-long-staff-password"
_MAKE_STAFF = """
from django.contrib.auth.models import Permission, User
user = User.objects.create_user({name!r}, password={password!r}, is_staff=True)
user.user_permissions.set(Permission.objects.filter(codename__in={codenames!r}))
"""


def make_staff(server: Server, name: str, *codenames: str) -> None:
    """A staff account with exactly these permissions, and ``STAFF_PASSWORD``."""
    code = _MAKE_STAFF.format(name=name, password=STAFF_PASSWORD, codenames=list(codenames))
    server.manage("shell", "-v0", "-c", code)


def log_in(client: httpx.Client, name: str, password: str) -> httpx.Response:
    fields = {"username": name, "password": password, "csrfmiddlewaretoken": csrf(client, "/admin/login/")}
    return client.post("/admin/login/", data={**fields, "next": "/"})


def csrf(client: httpx.Client, path: str) -> str:
    found = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', client.get(path).text)
    assert found is not None
    return found[1]
