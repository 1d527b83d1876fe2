"""WhatsApp by Meta's Cloud API, with a local server in the place of the Graph API."""

from collections.abc import Callable

import httpx
import pytest

from gateway_app.config.whatsapp import DEFAULT_PREFIX
from tests.support.graph_api import (
    EVENTS,
    PHONE,
    TOKEN,
    VERIFY_TOKEN,
    GraphApi,
    cloud_config,
    deliver_event,
    event,
    signature,
    text_message,
)
from tests.support.platforms import inbox_row, outbox_row, response_of, until_status
from tests.support.server import Server, eventually, script
from tests.support.session_client import read_session
from tests.support.stored_rows import update_rows

pytestmark = pytest.mark.any_database


@pytest.fixture(autouse=True)
def clean(graph: GraphApi) -> None:
    graph.messages.clear()
    graph.typing.clear()


def test_the_address_is_verified_with_the_token(cloud: Server) -> None:
    query = {"hub.mode": "subscribe", "hub.verify_token": VERIFY_TOKEN, "hub.challenge": "1158201444"}
    good = httpx.get(cloud.url + EVENTS, params=query)
    assert (good.status_code, good.text) == (200, "1158201444")
    bad = httpx.get(cloud.url + EVENTS, params=query | {"hub.verify_token": "guess"})
    assert bad.status_code == 403


@pytest.mark.parametrize("given", ["", "sha256=", "sha256=" + "0" * 64, signature(b"another body"), "0" * 64])
def test_a_webhook_without_the_signature_is_refused_and_stores_nothing(cloud: Server, given: str) -> None:
    body = text_message("wamid.forged", "hello")
    assert deliver_event(cloud, body, **{"X-Hub-Signature-256": given}).status_code == 401
    assert inbox_row(cloud, "wamid.forged") == []


def test_a_signed_body_that_is_no_event_is_a_400(cloud: Server) -> None:
    assert deliver_event(cloud, {"entry": [{"changes": [{"field": "messages"}]}]}).status_code == 400


def test_a_message_is_answered_through_the_graph_api(cloud: Server, graph: GraphApi) -> None:
    given = text_message("wamid.1", script({"say": "Hello from the cloud."}))
    assert [deliver_event(cloud, given).json()["stored"] for _ in range(10)] == [1] + [0] * 9
    sent = graph.until_sent(1)[0]
    assert sent["text"] == {"body": "Hello from the cloud.", "preview_url": False}
    assert (sent["to"], sent["type"], sent["recipient_type"]) == ("491700", "text", "individual")
    key = f"{response_of(cloud, 'wamid.1')}:end:0"
    assert sent["biz_opaque_callback_data"] == key
    assert graph.authorizations == {f"Bearer {TOKEN}"}
    eventually(lambda: outbox_row(cloud, key) == [("sent", "", sent["id"])], what="the note of it")
    assert read_session(cloud, "whatsapp:491700")["source"] == "whatsapp"


def test_typing_is_shown_while_a_turn_runs(cloud: Server, graph: GraphApi) -> None:
    deliver_event(cloud, text_message("wamid.typing", script({"gate": "typing"}, {"say": "Done."})))
    eventually(lambda: graph.typing == ["wamid.typing"], what="typing")
    cloud.open_gate("typing")
    graph.until_sent(1)


def test_a_stranger_gets_no_answer_and_their_text_is_not_kept(cloud: Server) -> None:
    deliver_event(cloud, text_message("wamid.stranger", "let me in", sender="666"))
    assert inbox_row(cloud, "wamid.stranger") == [("ignored", "The sender is not among allowed_senders.", "")]


def test_events_of_another_number_and_reactions_are_not_answered(cloud: Server, graph: GraphApi) -> None:
    other = text_message("wamid.other", "hello")
    other["entry"][0]["changes"][0]["value"]["metadata"]["phone_number_id"] = "999"
    assert deliver_event(cloud, other).json()["stored"] == 0
    assert inbox_row(cloud, "wamid.other") == []
    reaction = {"from": "491700", "id": "wamid.reaction", "timestamp": "1", "type": "reaction", "reaction": {}}
    deliver_event(cloud, event(messages=[reaction]))
    assert inbox_row(cloud, "wamid.reaction") == [("ignored", "A message of the type reaction.", "")]
    assert graph.messages == []


def test_a_picture_is_answered_though_it_can_not_be_read(cloud: Server, graph: GraphApi) -> None:
    picture = {"from": "491700", "id": "wamid.pic", "timestamp": "1", "type": "image", "image": {"caption": "look"}}
    deliver_event(cloud, event(messages=[picture]))
    graph.until_sent(1)
    (call,) = [call for call in cloud.model_calls("came with: image") if call["event"] == "started"][:1]
    assert call["texts"][-1] == "[The message came with: image. It can't be read here.]\nlook"


def test_a_limit_is_waited_for_and_a_refusal_becomes_a_dead_letter(cloud: Server, graph: GraphApi) -> None:
    limit = {"error": {"code": 130429, "message": "Rate limit hit"}}
    refusal = {"error": {"code": 131047, "message": "x", "error_data": {"details": "Re-engagement message"}}}
    graph.replies += [(429, {"Retry-After": "1"}, limit), (500, {}, None)]
    deliver_event(cloud, text_message("wamid.429", script({"say": "Patience."})))
    assert graph.until_sent(1)[0]["text"]["body"] == "Patience."
    graph.replies.append((400, {}, refusal))
    deliver_event(cloud, text_message("wamid.400", script({"say": "Too late."})))
    key = f"{response_of(cloud, 'wamid.400')}:end:0"
    until_status(cloud, key, "dead")
    assert "Re-engagement message" in outbox_row(cloud, key)[0][1]
    assert graph.texts() == ["Patience."]


def test_a_status_with_our_key_settles_a_message_whose_sender_died(cloud: Server) -> None:
    """The message reached WhatsApp, and the process died before it could note that."""
    deliver_event(cloud, text_message("wamid.gap", script({"say": "Once."})))
    key = f"{response_of(cloud, 'wamid.gap')}:end:0"
    until_status(cloud, key, "sent")
    unsent = {"status": "sending", "closed_at": None, "text": "Once.", "platform_message_id": ""}
    update_rows(cloud, "outboxmessage", unsent | {"next_try_at": "2999-01-01 00:00:00"}, key=key)
    status = {"id": "wamid.known", "status": "delivered", "timestamp": "1", "biz_opaque_callback_data": key}
    deliver_event(cloud, event(statuses=[status]))
    assert outbox_row(cloud, key) == [("sent", "", "wamid.known")]
    failed = status | {"status": "failed", "errors": [{"code": 131026, "title": "Message undeliverable"}]}
    deliver_event(cloud, event(statuses=[failed]))
    assert outbox_row(cloud, key)[0][:2] == ("dead", "131026: Message undeliverable")


def test_a_long_answer_is_split_at_paragraphs_each_with_the_prefix(
    configured_server: Callable[..., Server], graph: GraphApi
) -> None:
    server = configured_server(cloud_config(graph)).start()
    paragraphs = ["a" * 2000, "b" * 1500, "c" * 3000, "d" * 100]
    deliver_event(server, text_message("wamid.long", script({"say": "\n\n".join(paragraphs)})))
    graph.until_sent(2)
    assert graph.texts() == [
        DEFAULT_PREFIX + "\n\n".join(paragraphs[:2]),
        DEFAULT_PREFIX + "\n\n".join(paragraphs[2:]),
    ]
    assert all(len(text) <= 4096 for text in graph.texts())


def test_the_cloud_transport_needs_its_secrets(configured_server: Callable[..., Server], graph: GraphApi) -> None:
    server = configured_server(cloud_config(graph, app_secret=None))
    done = server.managed("check")
    assert done.returncode != 0
    assert "whatsapp.app_secret is required" in done.stderr.decode()
    assert PHONE not in done.stderr.decode()
