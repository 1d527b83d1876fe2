"""Profiles are made in the admin as strictly as in config.yaml: the operator gets the error, not the first client."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from responses_app.models import Profile

pytestmark = pytest.mark.django_db
GOOD = {"name": "coder", "toolset": "[]", "fallback_models": "[]", "is_enabled": "on"}


@pytest.fixture
def browser() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("ada", password="x"))
    return client


def save(browser: Client, **fields: str) -> Any:
    return browser.post("/admin/responses_app/profile/add/", {**GOOD, **fields})


def test_a_good_profile_is_saved(browser: Client) -> None:
    upstream = {"provider": "custom", "upstream_model": "m", "base_url": "https://models.example/v1"}
    assert save(browser, **upstream, toolset='["terminal"]').status_code == 302
    assert Profile.objects.get().toolset == ["terminal"]


@pytest.mark.parametrize(
    ("field", "value", "reported"),
    [
        ("provider", "oracle", "provider must be one of"),
        ("provider", "custom", "base_url is required"),
        ("toolset", '{"terminal": true}', "toolset must be a list"),
        ("toolset", "[7]", "toolset[0] must be text"),
        ("fallback_models", '"another"', "fallback_models must be a list"),
        ("fallback_models", '[{"who": "knows"}]', "who is not one of"),
    ],
)
def test_a_bad_one_is_refused_by_name(browser: Client, field: str, value: str, reported: str) -> None:
    answer = save(browser, **({"upstream_model": "m"} if value == "custom" else {}), **{field: value})
    assert answer.status_code == 200
    assert reported in answer.content.decode()
    assert not Profile.objects.exists()
