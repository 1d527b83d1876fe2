"""The inbox: a message is stored once, before the platform gets its reply."""

import hashlib

from django.db import transaction
from django.db.models.functions import Now

from gateway_app.platforms import wakeups
from gateway_app.platforms.adapter import Adapter, Incoming, Receipt, Received
from gateway_app.platforms.replies import store_message
from responses_app.metrics import platform_messages
from responses_app.models import (
    MAX_PLATFORM_ID_CHARS,
    InboxMessage,
    InboxStatus,
    OutboxMessage,
    PlatformChat,
    PlatformState,
)
from responses_app.protocol.text_buffer import clean_text

PAUSE, RESUME = "/pause", "/resume"
PAUSED = f"⏸ Paused. Send {RESUME} to go on."
RESUMED = "▶ I answer again."

NOT_ALLOWED = "The sender is not among allowed_senders."
NOT_MENTIONED = "A message of a group that does not mention this account."
OWN_MESSAGE = "A message that this server sent."
CHAT_PAUSED = "The chat is paused."
COMMAND = "A command."


def store_received(adapter: Adapter, received: Received) -> int:
    """In the writer's transaction; returns how many messages are new."""
    new = 0
    for message in received.messages:
        new += _store(adapter, message)
    for receipt in received.receipts:
        _note_receipt(adapter.name, receipt)
    if received.cursor:
        PlatformState.objects.update_or_create(
            platform=adapter.name, defaults={"cursor": received.cursor}
        )
    if new:
        transaction.on_commit(wakeups.inbox.wake)
    return new


def _store(adapter: Adapter, message: Incoming) -> bool:
    """False for a message that is here already."""
    known = InboxMessage.objects.filter(platform=adapter.name, message_id=_id(message.message_id))
    if known.exists():
        return False
    chat = _chat(adapter.name, message)
    reason = _reason_to_ignore(adapter, chat, message)
    row = InboxMessage(
        platform=adapter.name,
        message_id=_id(message.message_id),
        chat=chat,
        sender_id=_id(message.sender_id),
        sender_name=_id(message.sender_name),
        sent_at=message.sent_at,
    )
    if reason:
        row.status = InboxStatus.IGNORED
        row.reason = reason
        row.closed_at = message.sent_at
    else:
        row.text = _text_for_model(message)
    # Another process may store the same message at the same moment.
    InboxMessage.objects.bulk_create([row], ignore_conflicts=True)
    platform_messages.labels(adapter.name, "in", str(row.status)).inc()
    return not reason


def _chat(platform: str, message: Incoming) -> PlatformChat:
    chat, _ = PlatformChat.objects.get_or_create(
        platform=platform,
        chat_id=_id(message.chat_id),
        defaults={"is_group": message.is_group, "is_self": message.is_self_chat},
    )
    name = message.chat_name
    if not name and not message.is_group:
        name = message.sender_name
    PlatformChat.objects.filter(pk=chat.pk).update(
        name=_id(name) or chat.name, is_self=message.is_self_chat, last_message_at=Now()
    )
    return chat


def _reason_to_ignore(adapter: Adapter, chat: PlatformChat, message: Incoming) -> str:
    if message.ignored_because:
        return message.ignored_because
    sent = OutboxMessage.objects.filter(
        platform=adapter.name, platform_message_id=_id(message.message_id)
    )
    if sent.exists():
        return OWN_MESSAGE
    if not message.is_self_chat and not adapter.config.allows(message.sender_id):
        return NOT_ALLOWED
    if message.is_group and not message.is_mention:
        return NOT_MENTIONED
    command = message.text.strip().lower()
    if command in (PAUSE, RESUME):
        _set_paused(chat, message, is_paused=command == PAUSE)
        return COMMAND
    if chat.is_paused:
        return CHAT_PAUSED
    return ""


def _set_paused(chat: PlatformChat, message: Incoming, *, is_paused: bool) -> None:
    PlatformChat.objects.filter(pk=chat.pk).update(is_paused=is_paused)
    text = RESUMED
    if is_paused:
        text = PAUSED
    digest = hashlib.sha256(_id(message.message_id).encode()).hexdigest()
    store_message(chat, text, f"command:{chat.pk}:{digest}")


def _text_for_model(message: Incoming) -> str:
    text = clean_text(message.text)
    if message.attachment:
        note = f"[The message came with: {message.attachment}. It can't be read here.]"
        text = f"{note}\n{text}".strip()
    if message.is_group and message.sender_name:
        text = f"{clean_text(message.sender_name)}: {text}"
    return text


def _note_receipt(platform: str, receipt: Receipt) -> None:
    """It closes the gap of a process that died between sending and noting it."""
    rows = OutboxMessage.objects.filter(platform=platform)
    key, message_id = clean_text(receipt.key), _id(receipt.message_id)
    if receipt.error:
        rows.note_failed_delivery(key, message_id, clean_text(receipt.error))
    else:
        rows.note_delivery(key, message_id)


def _id(value: str) -> str:
    """As much as the column takes; no platform has ids that long."""
    return clean_text(value)[:MAX_PLATFORM_ID_CHARS]
