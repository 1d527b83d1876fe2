"""Channels of the layer for hints, which remembers each one that it makes until its end."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any


async def new_channel(layer: Any) -> str:
    """Leaves nothing where Redis takes no subscription: such attempts repeat for hours."""
    prefix = f"specific.{secrets.token_hex(8)}."
    try:
        channel: str = await layer.new_channel(prefix)
    except BaseException:
        for name in list(layer.channels):
            if prefix in name:
                del layer.channels[name]
        raise
    return channel


@asynccontextmanager
async def temporary_channel(layer: Any) -> AsyncIterator[str]:
    channel = await new_channel(layer)
    try:
        yield channel
    finally:
        # The layer ends a subscription only when a receive is cancelled.
        while channel in layer.channels:
            receiving = asyncio.ensure_future(layer.receive(channel))
            await asyncio.sleep(0)
            receiving.cancel()
            await asyncio.wait([receiving])
