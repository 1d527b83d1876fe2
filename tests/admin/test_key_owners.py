"""Who may make keys for which account."""

import re

import pytest

from tests.support.server import Server
from tests.support.staff import STAFF_PASSWORD, logged_in, make_staff
from tests.support.stored_rows import key_owner, stored_rows

pytestmark = pytest.mark.any_database
KEYS = "/admin/responses_app/apikey/"


def test_staff_make_keys_for_themselves_alone(server: Server) -> None:
    make_staff(server, "key-maker", "add_apikey", "view_apikey", "change_apikey")
    with logged_in(server, "key-maker", STAFF_PASSWORD) as maker:
        assert 'name="owner"' not in maker.page(f"{KEYS}add/")
        made = maker.post(f"{KEYS}add/", name="taken over", owner="1")
        assert made.status_code == 200
    assert key_owner(server, "taken over") == "key-maker"
    secret = re.search(r"hs-[\w-]{43}", made.text)
    assert secret is not None
    with server.http(secret[0]) as client:
        assert client.get("/v1/models").status_code == 200


def test_a_superuser_chooses_the_owner_once(server: Server) -> None:
    make_staff(server, "key-owner")
    (owner,) = stored_rows(server, "user", "id", username="key-owner")[0]
    with logged_in(server) as operator:
        operator.post(f"{KEYS}add/", name="for another", owner=str(owner))
        (key,) = stored_rows(server, "apikey", "id", name="for another")[0]
        changed = operator.post(f"{KEYS}{key}/change/", name="for another still", owner="1")
        assert changed.status_code == 200
    assert key_owner(server, "for another still") == "key-owner"
