"""Webhooks of Meta's WhatsApp Business Cloud API: their signature, messages and statuses."""

import hashlib
import hmac
import json
import logging
from collections.abc import Iterator, Mapping
from typing import Any

from gateway_app.platforms.adapter import (
    Incoming,
    Receipt,
    Received,
    WebhookRefused,
    sent_at,
)

SIGNATURE_HEADER = "X-Hub-Signature-256"
SIGNATURE_PREFIX = "sha256="
MEDIA = ("image", "video", "audio", "document", "sticker", "location", "contacts")
ANSWERED = (*MEDIA, "text", "button", "interactive")
DELIVERED = ("sent", "delivered", "read")

UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, OverflowError, OSError)

Fields = Mapping[str, Any]

logger = logging.getLogger(__name__)


def check_signature(headers: Mapping[str, str], body: bytes, app_secret: str) -> None:
    given = headers.get(SIGNATURE_HEADER, "")
    expected = hmac.new(app_secret.encode(), body, hashlib.sha256).hexdigest()
    signature = given.removeprefix(SIGNATURE_PREFIX)
    is_signed = given.startswith(SIGNATURE_PREFIX) and signature.isascii()
    if not is_signed or not hmac.compare_digest(signature, expected):
        raise WebhookRefused(401, f"{SIGNATURE_HEADER} does not match the body.")


def read_events(body: bytes, phone_number_id: str) -> Received:
    """The messages and statuses of one telephone number; those of others are not for this server."""
    messages: list[Incoming] = []
    receipts: list[Receipt] = []
    try:
        for value in _values(json.loads(body), phone_number_id):
            messages.extend(_messages(value))
            receipts.extend(_receipts(value))
    except (*UNREADABLE, RecursionError) as error:
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
        try:
            yield _incoming(message, names)
        except UNREADABLE as error:
            # Refused, the platform would repeat the whole event, and in the end drop the others.
            logger.warning("A message of WhatsApp can't be read: %s", type(error).__name__)


def _incoming(message: Fields, names: Mapping[Any, Any]) -> Incoming:
    kind = str(message["type"])
    content = message.get(kind) or {}
    name = str(names.get(message["from"], ""))
    text = _text(kind, content)
    attachment = ""
    if kind in MEDIA:
        attachment = kind
    ignored_because = ""
    if kind not in ANSWERED:  # reactions, edits, deletions, and what Meta adds
        ignored_because = f"A message of the type {kind}."
    elif not text and not attachment:
        ignored_because = "A message without text."
    elif message.get("group_id"):
        ignored_because = "A message of a group, which this transport does not answer."
    return Incoming(
        message_id=str(message["id"]),
        chat_id=str(message["from"]),
        sender_id=str(message["from"]),
        sender_name=name,
        text=text,
        sent_at=sent_at(message.get("timestamp")),
        attachment=attachment,
        ignored_because=ignored_because,
    )


def _text(kind: str, content: Any) -> str:
    if not isinstance(content, Mapping):  # of contacts, a list
        return ""
    if kind == "text":
        return str(content.get("body", ""))
    if kind == "button":
        return str(content.get("text", ""))
    if kind == "interactive":
        reply = content.get("button_reply") or content.get("list_reply") or {}
        return str(reply.get("title", ""))
    return str(content.get("caption", ""))


def _receipts(value: Fields) -> Iterator[Receipt]:
    """Only those of messages with our key: others were sent before, or by another program."""
    for status in value.get("statuses", ()):
        try:
            receipt = _receipt(status)
        except UNREADABLE as error:
            logger.warning("A status of WhatsApp can't be read: %s", type(error).__name__)
            continue
        if receipt is not None:
            yield receipt


def _receipt(status: Fields) -> Receipt | None:
    key = status.get("biz_opaque_callback_data")
    if not key:
        return None
    if status["status"] in DELIVERED:
        return Receipt(str(key), str(status["id"]))
    if status["status"] == "failed":
        return Receipt(str(key), str(status["id"]), _reason(status))
    return None


def _reason(status: Fields) -> str:
    for error in status.get("errors", ()):
        return f"{error.get('code')}: {error.get('title') or error.get('message')}"
    return "WhatsApp could not deliver it."
