"""Users in the admin: no deletion that takes everything of an owner with it."""

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.test import Client

from responses_app.models import Session

pytestmark = pytest.mark.django_db
USERS = "/admin/auth/user/"


@pytest.fixture
def browser() -> Client:
    client = Client()
    client.force_login(get_user_model().objects.create_superuser("ada", password="x"))
    return client


@pytest.fixture
def owner() -> User:
    owner = get_user_model().objects.create_user("owner")
    Session.objects.create(owner=owner, public_id="s", source="responses")
    return owner


def test_an_owner_is_erased_by_the_command_alone(browser: Client, owner: User) -> None:
    assert browser.post(f"{USERS}{owner.pk}/delete/", {"post": "yes"}).status_code == 403
    page = browser.get(f"{USERS}{owner.pk}/change/").content.decode()
    assert "manage.py erase_owner" in page
    assert "/delete/" not in page
    assert "delete_selected" not in browser.get(USERS).content.decode()
    fields = {"action": "delete_selected", "_selected_action": [str(owner.pk)], "post": "yes"}
    browser.post(USERS, fields)
    assert Session.objects.filter(owner=owner).exists()


def test_a_user_who_owns_nothing_can_be_deleted(browser: Client) -> None:
    guest = get_user_model().objects.create_user("guest")
    assert browser.post(f"{USERS}{guest.pk}/delete/", {"post": "yes"}).status_code == 302
    assert not get_user_model().objects.filter(pk=guest.pk).exists()
