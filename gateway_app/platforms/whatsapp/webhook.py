"""Webhooks of Meta's WhatsApp Business Cloud API: their signature, messages and statuses."""

import hashlib
import hmac
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from gateway_app.platforms.adapter import Incoming, Receipt, Received, WebhookRefused

SIGNATURE_HEADER = "X-Hub-Signature-256"
SIGNATURE_PREFIX = "sha256="
MEDIA = ("image", "video", "audio", "document", "sticker", "location", "contacts")
NOT_ANSWERED = ("reaction", "system", "unsupported", "request_welcome")
DELIVERED = ("sent", "delivered", "read")

Fields = Mapping[str, Any]


def check_signature(headers: Mapping[str, str], body: bytes, app_secret: str) -> None:
    given = headers.get(SIGNATURE_HEADER, "")
    expected = hmac.new(app_secret.encode(), body, hashlib.sha256).hexdigest()
    signature = given.removeprefix(SIGNATURE_PREFIX)
    is_signed = given.startswith(SIGNATURE_PREFIX) and signature.isascii()
    if not is_signed or not hmac.compare_digest(signature, expected):
        raise WebhookRefused(401, f"{SIGNATURE_HEADER} does not match the body.")


def read_events(body: bytes, phone_number_id: str) -> Received:
    """The messages and statuses of one telephone number; those of others are not for this server."""
    try:
        values = list(_values(json.loads(body), phone_number_id))
        messages = [message for value in values for message in _messages(value)]
        receipts = [receipt for value in values for receipt in _receipts(value)]
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, OSError) as error:
        raise WebhookRefused(400, "It is not an event of WhatsApp.", param="entry") from error
    return Received(messages, receipts)


def _values(event: Fields, phone_number_id: str) -> Iterator[Fields]:
    for entry in event["entry"]:
        for change in entry.get("changes", ()):
            value = change["value"]
            number = value.get("metadata", {}).get("phone_number_id")
            if change.get("field") == "messages" and str(number) == phone_number_id:
                yield value


def _messages(value: Fields) -> Iterator[Incoming]:
    names = {}
    for contact in value.get("contacts", ()):
        names[contact.get("wa_id")] = contact.get("profile", {}).get("name", "")
    for message in value.get("messages", ()):
        yield _incoming(message, str(names.get(message["from"], "")))


def _incoming(message: Fields, name: str) -> Incoming:
    kind = str(message["type"])
    content = message.get(kind) or {}
    attachment = ""
    if kind in MEDIA:
        attachment = kind
    ignored_because = ""
    if kind in NOT_ANSWERED:
        ignored_because = f"A message of the type {kind}."
    return Incoming(
        message_id=str(message["id"]),
        chat_id=str(message["from"]),
        sender_id=str(message["from"]),
        sender_name=name,
        text=_text(kind, content),
        sent_at=datetime.fromtimestamp(int(message["timestamp"]), UTC),
        attachment=attachment,
        ignored_because=ignored_because,
    )


def _text(kind: str, content: Any) -> str:
    if not isinstance(content, Mapping):  # of contacts, a list
        return ""
    if kind == "text":
        return str(content["body"])
    if kind == "button":
        return str(content.get("text", ""))
    if kind == "interactive":
        reply = content.get("button_reply") or content.get("list_reply") or {}
        return str(reply.get("title", ""))
    return str(content.get("caption", ""))


def _receipts(value: Fields) -> Iterator[Receipt]:
    """Only those of messages with our key: others were sent before, or by another program."""
    for status in value.get("statuses", ()):
        key = status.get("biz_opaque_callback_data")
        if not key:
            continue
        if status["status"] in DELIVERED:
            yield Receipt(str(key), str(status["id"]))
        elif status["status"] == "failed":
            yield Receipt(str(key), str(status["id"]), _reason(status))


def _reason(status: Fields) -> str:
    for error in status.get("errors", ()):
        return f"{error.get('code')}: {error.get('title') or error.get('message')}"
    return "WhatsApp could not deliver it."
