"""Operators see each platform: health, status, metrics, doctor, the dashboard and the admin."""

import shutil
from collections.abc import Callable, Iterator

import httpx
import pytest

from tests.support.graph_api import GraphApi, cloud_config, deliver_event, text_message
from tests.support.hermes_client import get
from tests.support.platforms import fake_config, inbox_row, outbox, outbox_row, response_of, until_sent, write
from tests.support.server import Server, eventually, script
from tests.support.staff import Operator, logged_in, page_messages
from tests.support.stored_rows import stored_rows, update_rows

pytestmark = pytest.mark.any_database
OUTBOX = "/admin/responses_app/outboxmessage/"
CHATS = "/admin/responses_app/platformchat/"


@pytest.fixture(scope="module")
def troubled(cloud: Server, graph: GraphApi) -> Server:
    """A server with WhatsApp and one dead letter."""
    graph.replies.append((400, {}, {"error": {"code": 131047, "message": "Re-engagement message"}}))
    deliver_event(cloud, text_message("wamid.dead", script({"say": "Too late."})))
    eventually(lambda: stored_rows(cloud, "outboxmessage", "id", status="dead"), what="the dead letter")
    return cloud


@pytest.fixture(scope="module")
def staff(troubled: Server) -> Iterator[Operator]:
    with logged_in(troubled) as found:
        yield found


def test_health_and_status_list_every_platform_with_its_queues(troubled: Server) -> None:
    health = get(troubled, "/health/detailed").json()
    whatsapp = health["platforms"]["whatsapp"]
    assert whatsapp["outbox"] == {"waiting": 0, "dead": 1}
    assert whatsapp["inbox"] == {"waiting": 0, "failed": 0}
    assert "Re-engagement message" in whatsapp["last_error"]
    assert health["readiness"]["checks"]["platforms"] == {"status": "degraded", "enabled": 1, "troubled": ["whatsapp"]}
    assert health["platforms"]["api_server"] == {"state": "connected"}
    assert get(troubled, "/api/status").json()["gateway_platforms"]["whatsapp"] == whatsapp
    for path, field in (("/health/detailed", "platforms"), ("/api/status", "gateway_platforms")):
        public = httpx.get(troubled.url + path).json()[field]
        assert public["whatsapp"] == {"state": whatsapp["state"]}


def test_metrics_count_messages_and_queues(troubled: Server) -> None:
    metrics = get(troubled, "/metrics").text
    assert 'hermes_platform_queue{platform="whatsapp",queue="dead"} 1.0' in metrics
    assert 'hermes_platform_messages_total{direction="in",outcome="received",platform="whatsapp"} 1.0' in metrics
    assert 'hermes_platform_messages_total{direction="out",outcome="dead",platform="whatsapp"} 1.0' in metrics


def test_the_pages_show_platforms_and_the_pairing_code(troubled: Server, staff: Operator) -> None:
    assert 'href="/platforms"' in staff.page("/")
    assert "Re-engagement message" in staff.page("/platforms")
    update_rows(troubled, "platformstate", {"pairing_code": "2@pair", "status": "pairing"})
    shown = eventually(lambda: page if "<svg" in (page := staff.page("/platforms")) else "", what="the code")
    assert 'aria-label="Pairing code of whatsapp"' in shown
    assert "2@pair" not in shown


def test_a_dead_letter_is_sent_again_from_the_admin(troubled: Server, staff: Operator, graph: GraphApi) -> None:
    ((pk,),) = stored_rows(troubled, "outboxmessage", "id", status="dead")
    assert "Re-engagement message" in staff.page(OUTBOX, status__exact="dead")
    assert "1 tried again." in page_messages(staff.act(OUTBOX, "retry", str(pk)))
    graph.until_sent(1)
    assert graph.texts() == ["Too late."]
    eventually(lambda: get(troubled, "/health/detailed").json()["platforms"]["whatsapp"]["outbox"]["dead"] == 0)
    assert "1 skipped" in page_messages(staff.act(OUTBOX, "retry", str(pk)))


def test_a_chat_is_paused_and_resumed_in_the_admin(troubled: Server, staff: Operator, graph: GraphApi) -> None:
    ((pk,),) = stored_rows(troubled, "platformchat", "id")
    staff.act(CHATS, "pause", str(pk))
    deliver_event(troubled, text_message("wamid.paused", "hello?"))
    assert inbox_row(troubled, "wamid.paused") == [("ignored", "The chat is paused.", "")]
    staff.act(CHATS, "resume", str(pk))
    deliver_event(troubled, text_message("wamid.resumed", script({"say": "Yes."})))
    eventually(lambda: "Yes." in graph.texts(), what="the reply")


def test_the_doctor_checks_platforms(configured_server: Callable[..., Server]) -> None:
    server = configured_server("platforms: {fake: {enabled: true, owner: missing-user}}\n")
    found = server.managed("doctor", "--offline").stdout.decode()
    assert "FAIL platforms fake: there is no active user 'missing-user'." in found
    assert "note platforms fake answers no message -> List the senders" in found
    assert "note platforms fake is stopped" in found


def test_a_message_that_can_not_be_admitted_is_reported_and_kept(configured_server: Callable[..., Server]) -> None:
    server = configured_server(fake_config(profile="no-such-profile")).start()
    write(server, "m1", "hello")
    assert until_sent(server, 1) == ["⚠ This message could not be taken. An operator can see why."]
    assert stored_rows(server, "inboxmessage", "status", "text") == [("failed", "hello")]


def test_deleted_content_is_not_sent_later(configured_server: Callable[..., Server], graph: GraphApi) -> None:
    server = configured_server(cloud_config(graph)).start()
    graph.replies.append((503, {"Retry-After": "600"}, None))
    deliver_event(server, text_message("wamid.secret", script({"say": "A secret."})))
    response_id = response_of(server, "wamid.secret")
    key = f"{response_id}:end:0"
    eventually(lambda: outbox(server) == [(key, "pending", "A secret.")], what="the postponed message")
    eventually(lambda: any(error for _, error, _ in outbox_row(server, key)), what="the error")
    with server.http() as client:
        assert client.delete(f"/v1/responses/{response_id}").status_code == 200
    assert outbox(server) == [(key, "withdrawn", "")]


def test_a_bridge_without_node_fails_the_doctor(configured_server: Callable[..., Server]) -> None:
    server = configured_server("whatsapp: {enabled: true}\n")
    if shutil.which("node"):
        server.env["PATH"] = "/nowhere"
    assert b"FAIL platforms whatsapp needs Node.js" in server.managed("doctor", "--offline").stdout
