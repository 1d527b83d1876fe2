"""Sessions that clients name like those of the playground, or in other odd ways."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from responses_app.models import Session

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("public_id", ["playground-ABC", "playground-a b%", "playground-<b>x</b>", "playground-"])
def test_the_playground_opens_beside_a_session_of_a_client(
    admin_client: Client, admin_user: User, public_id: str
) -> None:
    Session.objects.create(owner=admin_user, public_id=public_id, source="responses")
    answer = admin_client.get("/chat")
    assert answer.status_code == 200
    assert "No chats yet." in answer.content.decode()
