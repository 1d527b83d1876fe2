"""Hints to the runner of this process, as messages on the in-memory channel layer."""

import asyncio
import logging
from collections import deque
from typing import Any

from channels.consumer import AsyncConsumer
from channels.exceptions import ChannelFull
from channels.layers import get_channel_layer

from gateway_app.runtime.pins import pins
from gateway_app.runtime.runner import Runner
from responses_app.services.lifecycle.claim import Claimed

logger = logging.getLogger(__name__)

LAYER = "local"
CHANNEL = "generate"
FULL_SECS = 0.005  # between two looks for room; the consumer takes a message in microseconds
MAX_WAITING = 20_000  # twice the most slots a process can have; a message is an id


class InProcessDispatcher:
    """Sends in the order of the calls, and waits while the channel is full, at 100 messages."""

    def __init__(self) -> None:
        self.runner: Runner | None = None  # once it works
        self._waiting: deque[dict[str, Any]] = deque()
        self._sender: asyncio.Task[None] | None = None

    def reserve(self, owner_id: int, *, is_stored: bool = True) -> "SlotReservation | None":
        if self.runner is None:
            return None
        if is_stored and pins.is_known_elsewhere(owner_id):
            return None
        if not self.runner.reserve(owner_id):
            return None
        return SlotReservation(self.runner, owner_id)

    def generate(self, response_id: str, owner_id: int) -> None:
        self._send({"type": "generate.run", "response_id": response_id, "owner_id": owner_id})

    def cancel(self, response_id: str) -> None:
        self._send({"type": "generate.cancel", "response_id": response_id})

    def _send(self, message: dict[str, Any]) -> None:
        if len(self._waiting) >= MAX_WAITING:
            logger.info("Too many hints wait; the sweep will find %s.", message["response_id"])
            return
        self._waiting.append(message)
        if self._sender is None or self._sender.done():
            self._sender = asyncio.get_running_loop().create_task(self._deliver())

    async def _deliver(self) -> None:
        layer = get_channel_layer(LAYER)
        assert layer is not None
        while self._waiting:
            try:
                await layer.send(CHANNEL, self._waiting[0])
            except ChannelFull:
                await asyncio.sleep(FULL_SECS)
            else:
                self._waiting.popleft()


class SlotReservation:
    """A slot of the runner, taken before the turn is stored."""

    def __init__(self, runner: Runner, owner_id: int) -> None:
        self._runner = runner
        self._owner_id = owner_id
        self._is_held = True

    def may_claim(self) -> bool:
        return self._is_held and self._runner.may_claim

    def start(self, claimed: Claimed) -> None:
        self._is_held = False
        self._runner.start_claimed(claimed)

    def release(self) -> None:
        if self._is_held:
            self._is_held = False
            self._runner.give_back(self._owner_id)


class GenerateConsumer(AsyncConsumer):
    """Passes hints to the runner and returns at once: a worker handles one message at a time."""

    channel_layer_alias = "none"

    def __init__(self, runner: Runner) -> None:
        super().__init__()
        self.runner = runner

    async def generate_run(self, message: dict[str, Any]) -> None:
        self.runner.hint(message["response_id"], message["owner_id"])

    async def generate_cancel(self, message: dict[str, Any]) -> None:
        self.runner.cancel(message["response_id"])
