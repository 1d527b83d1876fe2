"""What is left of a session, and of a response in it, when it is deleted."""

from collections.abc import Callable

import pytest

from tests.support.server import Server, eventually, script
from tests.support.stored_rows import input_of_deleted

pytestmark = pytest.mark.any_database
FILL = """
from datetime import timedelta
from django.utils import timezone
from responses_app.models import Response
from tests.support.bulk_rows import copy_response, give_content
copy_response(Response.objects.get(), 999, step_secs=0)
give_content()
Response.objects.update(is_log_merged=True, finished_at=timezone.now() - timedelta(minutes=1))
"""


def test_a_deleted_response_is_in_no_preview(server: Server) -> None:
    with server.http() as client:
        session = client.post("/api/sessions", json={}).json()["session"]["id"]
        headers = {"X-Hermes-Session-Id": session}
        asked = {"input": script({"gate": "SECRET"}, {"say": "x"}), "background": True}
        made = client.post("/v1/responses", json=asked, headers=headers).json()["id"]
        shown = client.get(f"/api/sessions/{session}").json()["session"]
        assert "SECRET" in shown["preview"]
        client.delete(f"/v1/responses/{made}")
        hidden = client.get(f"/api/sessions/{session}").json()["session"]
        assert (hidden["preview"], hidden["message_count"]) == (None, 0)
    server.open_gate("SECRET")


def test_a_long_session_is_erased_by_the_sweep(make_server: Callable[..., Server]) -> None:
    """Logs that wait to be merged stand in front of none of it."""
    server = make_server(HERMES_SWEEP_SECS="0.2")
    with server.http() as client:
        session = client.post("/v1/responses", json={"input": "hello"}).headers["x-hermes-session-id"]
        server.manage("shell", "-v0", "-c", FILL)
        assert client.delete(f"/api/sessions/{session}").status_code == 200
        assert client.get(f"/api/sessions/{session}").status_code == 404
    eventually(lambda: input_of_deleted(server) == 0, 60, "the end of the erasing")
