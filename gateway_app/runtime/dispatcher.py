"""Hints as channel-layer messages to the worker consumer of this process."""

import asyncio
import logging
from typing import Any

from channels.exceptions import ChannelFull
from channels.layers import get_channel_layer

logger = logging.getLogger(__name__)

LAYER = "local"
CHANNEL = "generate"


class InProcessDispatcher:
    def __init__(self) -> None:
        self._sending: set[asyncio.Task[None]] = set()

    def generate(self, response_id: str) -> None:
        self._send({"type": "generate.run", "response_id": response_id})

    def cancel(self, response_id: str) -> None:
        self._send({"type": "generate.cancel", "response_id": response_id})

    def _send(self, message: dict[str, Any]) -> None:
        task = asyncio.get_running_loop().create_task(self._deliver(message))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _deliver(self, message: dict[str, Any]) -> None:
        layer = get_channel_layer(LAYER)
        assert layer is not None
        try:
            await layer.send(CHANNEL, message)
        except ChannelFull:
            logger.info("The generate channel is full; the sweep will find %s.", message["response_id"])
