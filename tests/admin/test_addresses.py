"""Addresses of admin pages: quoted as Django writes them, and with an id as the API prints it."""

import pytest
from django.contrib.admin.utils import quote
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from responses_app.models import Response, Session
from responses_app.protocol.status import OnDisconnect, Status

pytestmark = pytest.mark.django_db

READ_AS_ESCAPED = "resp_25" + "0" * 30  # Django's escape for a percent sign begins it


@pytest.fixture
def row(admin_user: User) -> Response:
    now = timezone.now()
    session = Session.objects.create(
        owner=admin_user, public_id="s", source="responses", created_at=now, last_active_at=now
    )
    made: Response = Response.objects.create(
        pk=READ_AS_ESCAPED,
        owner=admin_user,
        session=session,
        turn=1,
        model="m",
        status=Status.COMPLETED,
        on_disconnect=OnDisconnect.CONTINUE,
        created_at=now,
        finished_at=now,
        output=[],
    )
    return made


@pytest.mark.parametrize("written", [READ_AS_ESCAPED, quote(READ_AS_ESCAPED)], ids=["plain", "quoted"])
def test_a_response_is_found_by_either_form_of_its_id(admin_client: Client, row: Response, written: str) -> None:
    page = admin_client.get(f"/admin/responses_app/response/{written}/change/")
    assert page.status_code == 200
    assert "Turn 1" in page.content.decode()


def test_an_unknown_id_leads_to_the_start_page(admin_client: Client) -> None:
    page = admin_client.get("/admin/responses_app/response/resp_25/change/")
    assert page.status_code == 302
