"""The admin shows what is stored, and changes none of it."""

import re
from collections.abc import Iterator

import httpx
import pytest

from tests.harness import Server


@pytest.fixture(scope="module")
def admin(server: Server) -> Iterator[httpx.Client]:
    name, password = (server.home / "admin_login").read_text().split()
    client = httpx.Client(base_url=server.url, follow_redirects=True, timeout=30)
    page = client.get("/admin/login/")
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.text)
    assert token is not None
    fields = {"username": name, "password": password, "csrfmiddlewaretoken": token[1], "next": "/admin/"}
    answer = client.post("/admin/login/", data=fields, headers={"Referer": f"{server.url}/admin/login/"})
    assert "Site administration" in answer.text
    yield client
    client.close()


def test_every_list_and_every_detail_page_opens(server: Server, admin: httpx.Client) -> None:
    response_id = server.openai().responses.create(model="hermes-agent", input="<script>alert(1)</script>").id
    index = admin.get("/admin/")
    lists = set(re.findall(r'href="(/admin/(?:responses_app|gateway_app)/\w+/)"', index.text))
    assert len(lists) >= 7
    for path in lists:
        page = admin.get(path)
        assert page.status_code == 200, path
        for detail in re.findall(r'href="(/admin/[^"]+/change/)"', page.text)[:1]:
            assert admin.get(detail).status_code == 200, detail
    page = admin.get(f"/admin/responses_app/response/{response_id}/change/")
    assert "&lt;script&gt;alert(1)" in page.text
    assert "<script>alert(1)" not in page.text
    assert 'name="_save"' not in page.text


def test_styles_are_served(admin: httpx.Client) -> None:
    css = re.search(r'href="(/static/admin/css/base[^"]*)"', admin.get("/admin/").text)
    assert css is not None
    assert admin.get(css[1]).status_code == 200


def test_a_bearer_key_does_not_open_the_admin(server: Server) -> None:
    with server.http() as client:
        assert client.get("/admin/").status_code == 302


def test_a_cookie_does_not_open_the_api(admin: httpx.Client) -> None:
    assert admin.get("/v1/models").status_code == 401
