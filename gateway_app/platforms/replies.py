"""Replies: what a chat gets when its turn ends or waits, stored in the transaction that settles."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction

from gateway_app.platforms import wakeups
from gateway_app.platforms.adapter import Adapter, Target
from gateway_app.platforms.registry import adapters
from gateway_app.platforms.splitting import split_text
from responses_app.models import (
    InboxMessage,
    Kind,
    OutboxMessage,
    PlatformChat,
    Response,
    ToolEvent,
)
from responses_app.protocol.items import Item
from responses_app.protocol.response_object import ResponseBody
from responses_app.protocol.status import Status
from responses_app.services.history.transcript import text_of_output

NO_TEXT = "(The answer has no text.)"
CANCELLED = "⏹ Stopped."
FAILED = "⚠ That did not work ({code}). Send the message again to retry."
INCOMPLETE = "⚠ The answer ends here ({reason})."
WAITING = "⏳ {tool} needs an approval. An operator decides; the answer follows."
NOT_ADMITTED = "⚠ This message could not be taken. An operator can see why."


def store_reply(row: Response, body: ResponseBody | None) -> None:
    """The settling hook. ``body`` is None for a turn that waits for an approval."""
    if row.kind != Kind.PLATFORM:
        return
    asked = InboxMessage.objects.filter(response_id=row.pk).select_related("chat").first()
    if asked is not None:
        chat, message_id = asked.chat, asked.message_id
    else:  # its row is older than the housekeeping keeps
        found = PlatformChat.objects.filter(session_id=row.session_id).first()
        if found is None:
            return
        chat, message_id = found, ""
    if not chat.is_group:
        message_id = ""
    if body is None:
        _store_notice_of_wait(row, chat)
    elif Response.objects.filter(pk=row.pk, deleted_at__isnull=False).exists():
        # Without the response: its content is about to be erased, and this has none of it.
        store_message(chat, CANCELLED, end_key(row.pk), reply_to=message_id)
    else:
        reason = (body["incomplete_details"] or {}).get("reason", "")
        text = reply_text(body["status"], body["output"], body["error"], reason)
        store_message(chat, text, end_key(row.pk), response_id=row.pk, reply_to=message_id)


def reply_text(
    status: str, output: Sequence[Item], error: Mapping[str, Any] | None, reason: str
) -> str:
    text = text_of_output(output).strip()
    if status == Status.COMPLETED:
        return text or NO_TEXT
    note = CANCELLED
    if status == Status.FAILED:
        note = FAILED.format(code=(error or {}).get("code", "server_error"))
    elif status == Status.INCOMPLETE:
        note = INCOMPLETE.format(reason=reason or "unknown")
    return f"{text}\n\n{note}".strip()


def stored_text(message: OutboxMessage) -> str:
    """Of a dead letter that the platform took first: its part of the reply, from the response."""
    row = Response.objects.filter(pk=message.response_id).first()
    if row is None or row.output is None:
        return ""
    text = reply_text(row.status, row.output, row.error, row.incomplete_reason)
    parts = split_text(text, _room(message.chat))
    number = int(message.key.rpartition(":")[2])
    if number >= len(parts):
        return ""
    return parts[number]


def _store_notice_of_wait(row: Response, chat: PlatformChat) -> None:
    """Once for each call, however often the turn begins to wait."""
    waiting = ToolEvent.objects.undecided().filter(response_id=row.pk).order_by("pk")
    for event in waiting.only("pk", "name"):
        text = WAITING.format(tool=event.name)
        store_message(chat, text, f"{row.pk}:wait:{event.pk}", response_id=row.pk)


def end_key(response_id: str) -> str:
    return f"{response_id}:end"


def draft_key(response_id: str) -> str:
    return f"{response_id}:draft"


def store_message(
    chat: PlatformChat, text: str, key: str, *, response_id: str | None = None, reply_to: str = ""
) -> None:
    """In the caller's transaction: one row for each part. Rows that exist stay as they are."""
    rows = []
    for number, part in enumerate(split_text(text, _room(chat))):
        row = OutboxMessage(
            platform=chat.platform,
            chat=chat,
            response_id=response_id,
            key=f"{key}:{number}",
            text=part,
        )
        if number == 0:
            row.reply_to = reply_to
        rows.append(row)
    OutboxMessage.objects.add(rows)
    transaction.on_commit(wakeups.outbox.wake)


def _room(chat: PlatformChat) -> int:
    """A platform that is turned off may be turned on again before the row is sent."""
    adapter = adapters().get(chat.platform)
    if adapter is None:
        return Adapter.limit
    return adapter.room(target_of(chat))


def target_of(chat: PlatformChat, reply_to: str = "") -> Target:
    return Target(chat.chat_id, is_self_chat=chat.is_self, reply_to=reply_to)
