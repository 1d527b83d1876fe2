"""Hints to other processes: which logs have grown, which turns to cancel, that a key was revoked.

They are collected on the event loop and sent together. A hint that is lost only delays: every process
polls once a second.
"""

import asyncio
import logging
from typing import TypedDict

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.conf import settings

from responses_app.eventlog.segments import Segment
from responses_app.eventlog.tails import Tail

logger = logging.getLogger(__name__)

GROUP = "hints"
SEND_SECS = 2.0
MAX_IDS = 10_000  # more than run at once in a process; while Redis is away, newer positions replace older ones


class Hint(TypedDict):
    stored: dict[str, int]  # the newest position of each log
    cancelled: list[str]
    is_key_revoked: bool


class Hints:
    """What waits to be sent; nothing is collected in a process without other processes."""

    def __init__(self) -> None:
        self.is_on = False
        self._stored: dict[str, int] = {}
        self._cancelled: dict[str, None] = {}
        self._is_key_revoked = False
        self._arrival = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.is_on = True

    def note_stored(self, response_id: str, position: int) -> None:
        if response_id in self._stored or len(self._stored) < MAX_IDS:
            self._stored[response_id] = position
            self._arrival.set()

    def note_cancelled(self, response_id: str) -> None:
        if self.is_on and len(self._cancelled) < MAX_IDS:
            self._cancelled[response_id] = None
            self._arrival.set()

    def note_revoked(self) -> None:
        """From any thread."""
        assert self._loop is not None
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._set_revoked)

    def _set_revoked(self) -> None:
        self._is_key_revoked = True
        self._arrival.set()

    async def take(self) -> Hint:
        """All that has come since the last call, as soon as there is something.

        The callbacks of one commit run without a pause, so that they end up in the same hint.
        """
        await self._arrival.wait()
        self._arrival.clear()
        taken = Hint(
            stored=self._stored,
            cancelled=list(self._cancelled),
            is_key_revoked=self._is_key_revoked,
        )
        self._stored = {}
        self._cancelled = {}
        self._is_key_revoked = False
        return taken


hints = Hints()


async def send_hint(hint: Hint, sender: str) -> None:
    """To every process; raises what the client of Redis raises, at the latest after some seconds."""
    layer = get_channel_layer()
    assert layer is not None
    message = {"type": "hint", "sender": sender, **hint}
    async with asyncio.timeout(SEND_SECS):
        await layer.group_send(GROUP, message)


def announce_revocation() -> None:
    """From any thread of a server, and from a command, which has no loop: streams of the key end."""
    if hints.is_on:
        hints.note_revoked()
    elif settings.REDIS_URL:
        revoked = Hint(stored={}, cancelled=[], is_key_revoked=True)
        try:
            async_to_sync(send_hint)(revoked, "")
        except Exception as error:  # the processes check their keys once a second
            logger.info("The revocation was not announced (%s).", type(error).__name__)


class SharedTail(Tail):
    """A tail whose log has readers in other processes."""

    @property
    def is_followed(self) -> bool:
        return True

    def publish(self, segment: Segment) -> None:
        super().publish(segment)
        if not self.is_volatile:
            hints.note_stored(segment.response_id, segment.last_position)

    def take_over(self, segments: list[Segment]) -> None:
        """Events that another process has stored."""
        for segment in segments:
            super().publish(segment)
