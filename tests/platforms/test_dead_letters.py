"""Replies that a platform does not take: what is kept, what operators see, and how it is sent again."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from django.utils import timezone

from gateway_app.config.platforms import PlatformConfig
from gateway_app.config.whatsapp import WhatsAppConfig
from gateway_app.platforms.adapter import MessageRefused, SendFailed, Target
from gateway_app.platforms.whatsapp.cloud import CloudAdapter
from responses_app.models import PlatformStatus
from tests.support.graph_api import PHONE, TOKEN, GraphApi, deliver_event, event, text_message
from tests.support.hermes_client import get
from tests.support.platforms import outbox_row, response_of, until_status
from tests.support.server import Server, eventually, script
from tests.support.staff import Operator, logged_in, page_messages
from tests.support.stored_rows import stored_rows, update_rows

pytestmark = pytest.mark.any_database
OUTBOX = "/admin/responses_app/outboxmessage/"


@pytest.fixture(autouse=True)
def clean(graph: GraphApi) -> None:
    graph.messages.clear()
    graph.replies.clear()


@pytest.fixture(scope="module")
def staff(cloud: Server) -> Iterator[Operator]:
    with logged_in(cloud) as found:
        yield found


def ask(server: Server, message_id: str, text: str) -> str:
    """The key of the reply."""
    deliver_event(server, text_message(message_id, script({"say": text})))
    return f"{response_of(server, message_id)}:end:0"


def status(key: str, message_id: str, name: str) -> dict[str, Any]:
    errors = [{"code": 131026, "title": "Message undeliverable"}]
    found = {"id": message_id, "status": name, "timestamp": "1", "biz_opaque_callback_data": key, "errors": errors}
    return event(statuses=[found])


def test_an_error_that_repeats_the_access_token_is_shown_without_it(cloud: Server, graph: GraphApi) -> None:
    message = f"Malformed access token {TOKEN}"
    graph.replies.append((401, {}, {"error": {"code": 190, "message": message}}))
    key = ask(cloud, "wamid.token", "With a new token.")
    until_status(cloud, key, "sent")
    state = get(cloud, "/health/detailed").json()["platforms"]["whatsapp"]
    assert "Malformed access token …" in state["last_error"]
    for path in ("/health/detailed", "/api/status", "/metrics"):
        assert TOKEN not in get(cloud, path).text
    assert TOKEN not in cloud.log


async def test_a_refused_message_does_not_mean_that_the_platform_failed(graph: GraphApi) -> None:
    config = WhatsAppConfig(phone_number_id=PHONE, access_token=TOKEN, graph_url=graph.url)
    adapter = CloudAdapter(PlatformConfig("whatsapp"), config)
    graph.replies += [(400, {}, {"error": {"code": 131047, "message": "Too late"}}), (500, {}, None)]
    await adapter.start()
    try:
        with pytest.raises(MessageRefused):
            await adapter.send(Target("491700"), "hello", "k")
        assert (await adapter.health()).status == PlatformStatus.CONNECTED
        with pytest.raises(SendFailed):
            await adapter.send(Target("491700"), "hello", "k")
        assert (await adapter.health()).status == PlatformStatus.FAILED
    finally:
        await adapter.stop()


@pytest.mark.parametrize(
    ("given", "secs"),
    [
        pytest.param("99999999999999", 24 * 3600, id="centuries"),
        pytest.param("", 2 * 3600, id="date"),
        pytest.param("tomorrow", 2, id="no time"),
    ],
)
def test_the_time_that_a_platform_names_is_waited_for_at_most_until_the_message_is_a_dead_letter(
    cloud: Server, graph: GraphApi, given: str, secs: float
) -> None:
    limit = {"error": {"code": 130429, "message": "Rate limit hit"}}
    given = given or format_datetime(timezone.now() + timedelta(seconds=secs))
    graph.replies.append((429, {"Retry-After": given}, limit))
    key = ask(cloud, f"wamid.{secs}", "Later.")
    eventually(lambda: any(error for _, error, _ in outbox_row(cloud, key)), what="the error")
    ((at,),) = stored_rows(cloud, "outboxmessage", "next_try_at", key=key)
    if not isinstance(at, datetime):
        at = datetime.fromisoformat(f"{at}+00:00")
    assert abs((at - timezone.now()).total_seconds() - secs) < 120
    update_rows(cloud, "outboxmessage", {"next_try_at": "2020-01-01 00:00:00"}, key=key)
    until_status(cloud, key, "sent")


def test_a_message_that_was_not_delivered_can_be_sent_again_whatever_reports_come_late(
    cloud: Server, graph: GraphApi, staff: Operator
) -> None:
    key = ask(cloud, "wamid.undelivered", "Do you read me?")
    until_status(cloud, key, "sent")
    first = graph.messages[0]["id"]
    deliver_event(cloud, status(key, first, "failed"))
    deliver_event(cloud, status(key, first, "sent"))  # reports come in any order
    assert outbox_row(cloud, key) == [("dead", "131026: Message undeliverable", first)]
    ((pk,),) = stored_rows(cloud, "outboxmessage", "id", key=key)
    assert "1 tried again." in page_messages(staff.act(OUTBOX, "retry", str(pk)))
    until_status(cloud, key, "sent")
    for name in ("failed", "sent"):
        deliver_event(cloud, status(key, first, name))  # a webhook is repeated for days
    assert outbox_row(cloud, key) == [("sent", "", graph.messages[1]["id"])]
    assert graph.texts() == ["Do you read me?"] * 2


def test_a_failure_that_is_reported_before_the_send_is_noted_stays(cloud: Server) -> None:
    key = ask(cloud, "wamid.early", "Hello.")
    until_status(cloud, key, "sent")
    unsent = {"status": "sending", "closed_at": None, "text": "Hello.", "platform_message_id": ""}
    update_rows(cloud, "outboxmessage", unsent | {"next_try_at": "2999-01-01 00:00:00"}, key=key)
    deliver_event(cloud, status(key, "wamid.first", "failed"))
    assert outbox_row(cloud, key)[0][::2] == ("dead", "wamid.first")


def test_a_dead_letter_can_be_discarded(cloud: Server, graph: GraphApi, staff: Operator) -> None:
    graph.replies.append((400, {}, {"error": {"code": 131047, "message": "Too late"}}))
    key = ask(cloud, "wamid.discarded", "Never mind.")
    until_status(cloud, key, "dead")
    ((pk,),) = stored_rows(cloud, "outboxmessage", "id", key=key)
    assert "1 discarded." in page_messages(staff.act(OUTBOX, "discard", str(pk)))
    assert outbox_row(cloud, key)[0][0] == "withdrawn"
    assert "1 skipped" in page_messages(staff.act(OUTBOX, "retry", str(pk)))
