"""While a turn runs: "typing", and a draft that grows where the platform can edit."""

import asyncio
import logging
import time
from contextlib import aclosing
from functools import partial

from gateway_app.platforms.adapter import Adapter, MessageRefused, SendFailed, Target
from gateway_app.platforms.replies import draft_key, target_of
from gateway_app.platforms.splitting import first_part
from responses_app.database import database
from responses_app.eventlog import LogErased
from responses_app.eventlog.store import event_store
from responses_app.models import InboxMessage, Kind, OutboxMessage, PlatformChat, Response
from responses_app.protocol.errors import ResponseInterrupted, StorageUnavailable
from responses_app.protocol.events import TEXT_DELTA
from responses_app.protocol.sse import decode_frame, split_frames
from responses_app.services.lifecycle.claim import process_id

logger = logging.getLogger(__name__)

FOLLOWED = 100  # turns of one platform at once
FIRST_DRAFT_CHARS = 40
EDIT_SECS = 2.0  # between two edits
IDLE_SECS = 1.0


class Follower:
    """Follows the running turns of one platform; nothing durable depends on it."""

    def __init__(self, adapter: Adapter, *, only_own_turns: bool) -> None:
        self._adapter = adapter
        self._only_own_turns = only_own_turns
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def step(self) -> bool:
        for response_id, chat, asked in await database.read(self._running):
            if response_id not in self._tasks:
                turn = FollowedTurn(self._adapter, response_id, chat, asked)
                task = asyncio.create_task(turn.follow())
                self._tasks[response_id] = task
                task.add_done_callback(partial(self._ended, response_id))
        return False

    async def stop(self) -> None:
        for task in self._tasks.values():
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks.values())

    def _ended(self, response_id: str, task: asyncio.Task[None]) -> None:
        del self._tasks[response_id]
        if not task.cancelled() and task.exception() is not None:
            logger.error("%s could not be followed.", response_id, exc_info=task.exception())

    def _running(self) -> list[tuple[str, PlatformChat, str]]:
        """Their chats, and the message that each of them answers."""
        rows = Response.objects.open().filter(kind=Kind.PLATFORM, parked_until__isnull=True)
        rows = rows.exclude(lease_owner="")
        if self._only_own_turns:
            rows = rows.filter(lease_owner=process_id())
        running = dict(rows.order_by("created_at").values_list("pk", "session_id")[:FOLLOWED])
        chats = PlatformChat.objects.filter(
            session_id__in=list(running.values()), platform=self._adapter.name
        )
        by_session = {chat.session_id: chat for chat in chats}
        asked = InboxMessage.objects.filter(response_id__in=list(running))
        messages = dict(asked.values_list("response_id", "message_id"))
        found = []
        for response_id, session_id in running.items():
            chat = by_session.get(session_id)
            if chat is not None:
                found.append((response_id, chat, messages.get(response_id, "")))
        return found


class FollowedTurn:
    """One running turn, from its log."""

    def __init__(self, adapter: Adapter, response_id: str, chat: PlatformChat, asked: str) -> None:
        self._adapter = adapter
        self._response_id = response_id
        self._chat = chat
        self._target: Target = target_of(chat)
        self._asked = asked
        self._text = ""
        self._shown = ""
        self._draft_id = ""
        self._may_draft = adapter.can_edit
        self._typed_at = 0.0
        self._edited_at = 0.0

    async def follow(self) -> None:
        try:
            log = event_store.read_after(self._response_id, -1, IDLE_SECS)
            async with aclosing(log) as batches:  # type: ignore[type-var]
                async for segments in batches:
                    for segment in segments:
                        self._read(segment.data)
                        if segment.is_final:
                            return
                    await self._show()
        except (LogErased, ResponseInterrupted, StorageUnavailable):
            return

    def _read(self, data: bytes) -> None:
        for frame in split_frames(data):
            if TEXT_DELTA.encode() in frame[:100]:
                self._text += str(decode_frame(frame)["delta"])

    async def _show(self) -> None:
        """A platform that does not take it costs nothing but the sight of it."""
        try:
            now = time.monotonic()
            if self._may_draft and now - self._edited_at >= EDIT_SECS:
                await self._grow()
                self._edited_at = time.monotonic()
            if now - self._typed_at >= self._adapter.typing_secs:
                self._typed_at = now
                await self._adapter.show_typing(self._target, self._asked)
        except (SendFailed, MessageRefused) as error:
            logger.info("%s: %s", self._adapter.name, error)
            self._may_draft = self._may_draft and bool(self._draft_id)

    async def _grow(self) -> None:
        text = first_part(self._text, self._adapter.room(self._target))
        if len(text) < FIRST_DRAFT_CHARS or text == self._shown:
            return
        if self._draft_id:
            await self._adapter.edit(self._target, self._draft_id, text)
        else:
            await self._begin_draft(text)
        self._shown = text

    async def _begin_draft(self, text: str) -> None:
        key = draft_key(self._response_id)
        pk = await database.write(partial(self._reserve_draft, key))
        if pk is None:
            self._may_draft = False
            return
        self._draft_id = await self._adapter.send(self._target, text, key)
        note = partial(
            OutboxMessage.objects.filter(pk=pk).update, platform_message_id=self._draft_id
        )
        await database.write_with_retry(note)

    def _reserve_draft(self, key: str) -> int | None:
        """Not while an earlier message of the chat is unsent: the draft would overtake it."""
        unsent = OutboxMessage.objects.filter(chat=self._chat, closed_at__isnull=True)
        if unsent.exists():
            return None
        return OutboxMessage.objects.begin_draft(self._chat, self._response_id, key)
