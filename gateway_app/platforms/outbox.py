"""The outbox: each message is sent at least once, in the order of its chat."""

import asyncio
import logging
from contextlib import suppress
from datetime import timedelta
from functools import partial

from django.conf import settings
from django.utils import timezone

from gateway_app.platforms import wakeups
from gateway_app.platforms.adapter import Adapter, MessageRefused, SendFailed
from gateway_app.platforms.replies import draft_key, end_key, stored_text, target_of
from gateway_app.platforms.states import note_outcome
from responses_app.database import database
from responses_app.metrics import platform_messages
from responses_app.models import OutboxMessage
from responses_app.protocol.errors import StorageUnavailable

logger = logging.getLogger(__name__)

SENT_AT_ONCE = 8  # chats; the messages of one chat go one after the other
SEND_SECS = 30.0  # less than a claim lasts, or another process would send it meanwhile
FIRST_DELAY_SECS = 1.0  # doubled with each attempt
MAX_DELAY_SECS = 300.0
GIVE_UP_AFTER = timedelta(hours=24)  # WhatsApp takes no free text later than that
DRAFT_WAIT_SECS = 1.0
DRAFT_IS_LOST_AFTER = timedelta(seconds=15)


class Sender:
    """Sends the due messages of one platform; several processes may do the same."""

    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter
        self._sending: dict[int, asyncio.Task[None]] = {}  # by chat

    async def step(self) -> bool:
        """Begin to send what is due; the end of a message wakes the loop."""
        room = SENT_AT_ONCE - len(self._sending)
        if room <= 0:
            return False
        for row in await database.read(self._due, room, list(self._sending)):
            task = asyncio.create_task(self._send(row))
            self._sending[row.chat_id] = task
            task.add_done_callback(partial(self._ended, row.chat_id))
        return False

    async def finish(self, secs: float) -> None:
        """Send what is due: the last turns may have ended a moment ago."""
        with suppress(TimeoutError, StorageUnavailable):  # the next start sends the rest
            async with asyncio.timeout(secs):
                await self.step()
                while self._sending:
                    await asyncio.wait(self._sending.values())
                    await self.step()

    def _due(self, room: int, busy_chats: list[int]) -> list[OutboxMessage]:
        due = OutboxMessage.objects.due(self._adapter.name).exclude(chat_id__in=busy_chats)
        return list(due.select_related("chat")[:room])

    def _ended(self, chat_id: int, task: asyncio.Task[None]) -> None:
        del self._sending[chat_id]
        error = None
        if not task.cancelled():
            error = task.exception()
        if isinstance(error, StorageUnavailable):
            return  # tried again when the database is available
        if error is not None:
            logger.error("A message could not be sent.", exc_info=error)
        else:
            wakeups.outbox.wake()  # the chat may have another message

    async def _send(self, row: OutboxMessage) -> None:
        claim = partial(
            OutboxMessage.objects.claim, row.pk, row.attempts, settings.HERMES_SENDING_SECS
        )
        if not await database.write(claim):
            return
        try:
            async with asyncio.timeout(SEND_SECS):
                message_id = await self._deliver(row)
        except MessageRefused as error:
            await self._give_up(row, str(error))
        except (SendFailed, TimeoutError) as error:
            await self._fail(row, error)
        except _DraftOnItsWay:
            await self._postpone(row, "", DRAFT_WAIT_SECS)
        else:
            mark = partial(OutboxMessage.objects.mark_sent, row.pk, message_id)
            await database.write_with_retry(mark)
            platform_messages.labels(row.platform, "out", "sent").inc()
            await note_outcome(row.platform)

    async def _deliver(self, row: OutboxMessage) -> str:
        """As a new message, or as the last edit of the draft that grew into it."""
        target = target_of(row.chat, row.reply_to)
        text = row.text or await database.read(stored_text, row)
        if not text:
            raise MessageRefused("Its text has been deleted.")
        draft_id = await self._draft_of(row)
        if draft_id:
            try:
                await self._adapter.edit(target, draft_id, text)
                return draft_id
            except MessageRefused as error:  # too old to be edited, or deleted by a person
                logger.info("%s is sent as a new message: %s", row.key, error)
        return await self._adapter.send(target, text, row.key)

    async def _draft_of(self, row: OutboxMessage) -> str:
        if not self._adapter.can_edit or row.response_id is None:
            return ""
        if row.key != f"{end_key(row.response_id)}:0":
            return ""
        draft = await database.read(_find_draft, row.response_id)
        if draft is None:
            return ""
        is_lost = draft.created_at < timezone.now() - DRAFT_IS_LOST_AFTER
        if not draft.platform_message_id and not is_lost:
            raise _DraftOnItsWay
        return str(draft.platform_message_id)

    async def _fail(self, row: OutboxMessage, error: Exception) -> None:
        reason = str(error) or "The platform did not answer in time."
        left = GIVE_UP_AFTER - (timezone.now() - row.created_at)
        if left < timedelta(0):
            await self._give_up(row, reason)
            return
        delay = min(FIRST_DELAY_SECS * 2 ** min(row.attempts, 20), MAX_DELAY_SECS)
        if isinstance(error, SendFailed) and error.retry_after is not None:
            # At most until it becomes a dead letter, which operators see.
            delay = max(delay, min(error.retry_after, left.total_seconds()))
        await self._postpone(row, reason, delay)
        platform_messages.labels(row.platform, "out", "failed").inc()
        await note_outcome(row.platform, reason)

    async def _postpone(self, row: OutboxMessage, reason: str, delay_secs: float) -> None:
        claimed = row.attempts + 1
        later = partial(OutboxMessage.objects.postpone, row.pk, claimed, reason, delay_secs)
        await database.write_with_retry(later)

    async def _give_up(self, row: OutboxMessage, reason: str) -> None:
        claimed = row.attempts + 1
        mark = partial(OutboxMessage.objects.mark_dead, row.pk, claimed, reason)
        await database.write_with_retry(mark)
        platform_messages.labels(row.platform, "out", "dead").inc()
        await note_outcome(row.platform, reason)


class _DraftOnItsWay(Exception):
    """Its id is not known yet."""


def _find_draft(response_id: str) -> OutboxMessage | None:
    return OutboxMessage.objects.filter(key=draft_key(response_id)).first()
