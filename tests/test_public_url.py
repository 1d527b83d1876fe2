"""Behind a proxy that ends TLS: browsers see https, the server sees http."""

import re
from collections.abc import Callable, Iterator

import httpx
import pytest

from tests.browser import credentials
from tests.harness import Server

ORIGIN = "https://hermes.example:8443"
PASSED_ON = {"Host": "hermes.example:8443", "X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.9"}


@pytest.fixture
def proxied(make_server: Callable[..., Server]) -> Iterator[Server]:
    yield make_server(HERMES_PUBLIC_URL=ORIGIN)


def log_in(server: Server, **headers: str) -> httpx.Response:
    """As a browser does behind the proxy; its Secure cookies are carried by hand, since here it is http."""
    name, password = credentials(server)
    with httpx.Client(base_url=server.url, headers=headers, timeout=30) as client:
        page = client.get("/admin/login/")
        token = re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.text)[0]
        cookie = page.headers["set-cookie"].split(";")[0]
        fields = {"username": name, "password": password, "csrfmiddlewaretoken": token, "next": "/"}
        sent = {"Origin": ORIGIN, "Referer": f"{ORIGIN}/admin/login/", "Cookie": cookie}
        return client.post("/admin/login/", data=fields, headers=sent)


def test_staff_log_in_through_the_proxy(proxied: Server) -> None:
    answer = log_in(proxied, **PASSED_ON)
    assert answer.status_code == 302, answer.text
    assert re.search(r"sessionid=.*; Secure", answer.headers["set-cookie"])


def test_so_they_do_where_the_proxy_tells_nothing_of_itself(proxied: Server) -> None:
    assert log_in(proxied).status_code == 302


def test_what_watchers_may_see_on_loopback_needs_a_key_then(proxied: Server) -> None:
    assert httpx.get(f"{proxied.url}/metrics").status_code == 401
    with proxied.http() as client:
        assert client.get("/metrics").status_code == 200


def test_other_names_are_still_refused(proxied: Server) -> None:
    answer = httpx.get(f"{proxied.url}/health", headers={"Host": "rebound.example"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_host")


def test_pages_of_other_origins_stay_strangers(proxied: Server) -> None:
    """A form elsewhere can't log anybody in, whatever it says about TLS."""
    page = httpx.get(f"{proxied.url}/admin/login/", headers=PASSED_ON)
    token = re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.text)[0]
    sent = {**PASSED_ON, "Origin": "https://evil.example", "Cookie": page.headers["set-cookie"].split(";")[0]}
    answer = httpx.post(f"{proxied.url}/admin/login/", data={"csrfmiddlewaretoken": token}, headers=sent)
    assert answer.status_code == 403
