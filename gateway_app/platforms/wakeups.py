"""Wake-ups for the loops of this process: hints, beside polls once a second."""

import asyncio


class Wakeup:
    """An event that other threads set."""

    def __init__(self) -> None:
        self._event: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def wake(self) -> None:
        """From any thread; nothing in a process without these loops."""
        if self._loop is not None and self._event is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._event.set)

    async def wait(self, secs: float) -> None:
        """Until it is woken, at most this long."""
        if self._event is None:
            self._event = asyncio.Event()
            self._loop = asyncio.get_running_loop()
        waiting = asyncio.ensure_future(self._event.wait())
        try:
            await asyncio.wait({waiting}, timeout=secs)
        finally:
            waiting.cancel()
        self._event.clear()


inbox = Wakeup()
outbox = Wakeup()
