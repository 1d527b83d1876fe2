"""A channel layer whose client swallows the first cancellation and waits on, as that of Redis may."""

import asyncio
from contextlib import suppress
from typing import Any

from channels.layers import BaseChannelLayer


class SwallowingLayer(BaseChannelLayer):
    is_receiving = False

    async def receive(self, channel: str) -> dict[str, Any]:
        self.is_receiving = True
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await asyncio.Event().wait()
        return {}
