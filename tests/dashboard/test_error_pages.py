"""What people see where there is no page: a page in words, while other clients get JSON."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import OperationalError, connection
from django.test import Client

pytestmark = pytest.mark.django_db
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8"
JSON = "application/json"


@pytest.fixture
def client() -> Client:
    client = Client(raise_request_exception=False)
    client.force_login(get_user_model().objects.create_superuser("ada", password="x"))
    return client


@contextmanager
def dead_database() -> Iterator[None]:
    def refuse(*args: Any) -> None:
        raise OperationalError("connection to server at 10.0.0.7 failed")

    with connection.execute_wrapper(refuse):
        yield


@pytest.mark.parametrize("path", ["/nowhere", "/admin/nowhere/", "/chat/", "/live/"])
def test_a_browser_gets_a_page_with_links(client: Client, path: str) -> None:
    answer = client.get(path, headers={"Accept": BROWSER})
    assert answer.status_code == 404
    assert answer["Content-Type"].startswith("text/html")
    page = answer.content.decode()
    assert "<h1>Not found</h1>" in page
    assert 'href="/admin/"' in page


@pytest.mark.parametrize("accept", ["*/*", JSON, "text/event-stream", "", "application/json, text/html;q=0.5"])
def test_other_clients_get_json(client: Client, accept: str) -> None:
    answer = client.get("/nowhere", headers={"Accept": accept})
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "unknown_path"


@pytest.mark.parametrize("path", ["/", "/chat", "/live/resp_1", "/admin/", "/admin/responses_app/response/"])
def test_pages_without_a_database_say_so(client: Client, path: str) -> None:
    with dead_database():
        answer = client.get(path, headers={"Accept": BROWSER})
    assert answer.status_code == 503
    page = answer.content.decode()
    assert "<h1>The database does not answer</h1>" in page
    assert "manage.py doctor" in page
    assert "10.0.0.7" not in page
    assert "Retry-After" in answer


def test_an_address_is_shown_as_text(client: Client) -> None:
    answer = client.get("/<script>alert(1)</script>", headers={"Accept": BROWSER})
    assert b"<script>alert" not in answer.content
    assert "script-src 'self'" in answer["Content-Security-Policy"]


def test_the_admin_is_found_without_a_slash(client: Client) -> None:
    answer = client.get("/admin", follow=True)
    assert answer.redirect_chain == [("/admin/", 302)]
    assert answer.status_code == 200
