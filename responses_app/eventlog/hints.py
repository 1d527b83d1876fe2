"""Hints to other processes: which logs have grown, which turns to cancel, that a key was revoked.

They are collected on the event loop and sent together. A hint that is lost only delays: every process
polls once a second. Hints also carry what was stored, so that its readers need no query.
"""

import asyncio
import logging
from functools import cached_property
from typing import NotRequired, TypedDict

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.conf import settings

from responses_app.eventlog.carried_segments import MAX_BYTES, SegmentSealer
from responses_app.eventlog.segments import Segment
from responses_app.eventlog.tails import Tail

logger = logging.getLogger(__name__)

GROUP = "hints"  # of the processes that have readers
WORKERS = "hints.workers"  # they have none: they get no positions, which most hints consist of
SEND_SECS = 2.0
MAX_IDS = 10_000  # more than run at once in a process; while Redis is away, newer positions replace older ones


class Hint(TypedDict):
    stored: dict[str, int]  # the newest position of each log
    cancelled: list[str]
    is_key_revoked: bool
    segments: NotRequired[bytes]  # sealed; of logs in `stored`, and not of all


class Hints:
    """What waits to be sent; nothing is collected in a process without other processes."""

    def __init__(self) -> None:
        self.is_on = False
        self._stored: dict[str, int] = {}
        self._segments: list[Segment] = []
        self._segment_bytes = 0
        self._cancelled: dict[str, None] = {}
        self._is_key_revoked = False
        self._arrival = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    @cached_property
    def _sealer(self) -> SegmentSealer:
        """Not made with this module: two processes that fork after its import would share nonces."""
        return SegmentSealer()

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.is_on = True

    def note_stored(self, segment: Segment) -> None:
        """After its commit."""
        response_id = segment.response_id
        if response_id not in self._stored and len(self._stored) >= MAX_IDS:
            return
        self._stored[response_id] = segment.last_position
        self._segment_bytes += segment.size
        if self._segment_bytes <= MAX_BYTES:
            self._segments.append(segment)
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
        if self._segments:
            taken["segments"] = self._sealer.seal(self._segments)
        self._stored = {}
        self._segments = []
        self._segment_bytes = 0
        self._cancelled = {}
        self._is_key_revoked = False
        return taken


hints = Hints()


async def send_hint(hint: Hint, sender: str) -> None:
    """To every process that needs it; raises what the client of Redis raises, after some seconds at most."""
    layer = get_channel_layer()
    assert layer is not None
    message = {"type": "hint", "sender": sender, **hint}
    async with asyncio.timeout(SEND_SECS):
        await layer.group_send(GROUP, message)
        if hint["cancelled"] or hint["is_key_revoked"]:
            await layer.group_send(WORKERS, message)


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

    is_always_followed = True

    def publish(self, segment: Segment) -> None:
        super().publish(segment)
        if not self.is_volatile:
            hints.note_stored(segment)
