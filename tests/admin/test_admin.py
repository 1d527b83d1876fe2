"""The admin shows what is stored, and changes none of it."""

import re
from collections.abc import Iterator

import httpx
import pytest

from tests.support.server import Server
from tests.support.staff import logged_in, response_page


@pytest.fixture(scope="module")
def admin(server: Server) -> Iterator[httpx.Client]:
    with logged_in(server) as operator:
        yield operator.client


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
    page = admin.get(response_page(response_id))
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
