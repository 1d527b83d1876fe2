"""Behind a proxy that ends TLS: browsers see https, the server sees http."""

import re
from collections.abc import Callable

import httpx

from tests.support.browser import credentials
from tests.support.server import Server

ORIGIN = "https://hermes.example:8443"
PASSED_ON = {"Host": "hermes.example:8443", "X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.9"}


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


def refused_form(server: Server) -> httpx.Response:
    """A form of another site, with a token that was fetched for it."""
    page = httpx.get(f"{server.url}/admin/login/", headers=PASSED_ON)
    token = re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.text)[0]
    sent = {**PASSED_ON, "Origin": "https://evil.example", "Cookie": page.headers["set-cookie"].split(";")[0]}
    return httpx.post(f"{server.url}/admin/login/", data={"csrfmiddlewaretoken": token}, headers=sent)


def test_staff_log_in_through_the_proxy_and_strangers_stay_outside(make_server: Callable[..., Server]) -> None:
    server = make_server(HERMES_PUBLIC_URL=ORIGIN)
    answer = log_in(server, **PASSED_ON)
    assert answer.status_code == 302, answer.text
    assert re.search(r"sessionid=.*; Secure", answer.headers["set-cookie"])
    assert log_in(server).status_code == 302  # where the proxy sends no headers of its own
    assert refused_form(server).status_code == 403
    rebound = httpx.get(f"{server.url}/health", headers={"Host": "rebound.example"})
    assert (rebound.status_code, rebound.json()["error"]["code"]) == (400, "invalid_host")
    assert httpx.get(f"{server.url}/metrics").status_code == 401
    with server.http() as client:
        assert client.get("/metrics").status_code == 200
