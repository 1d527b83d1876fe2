"""Which requests are running in this process, and whether it still takes new ones."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class RequestGate:
    """Open while the process serves; closed for good when it is about to end."""

    def __init__(self) -> None:
        self.is_closed = False
        self.has_cancelled = False  # the requests that were still running at the end
        # Called when the gate closes, for connections that would otherwise stay open for ever.
        self.close_callbacks: set[Callable[[], None]] = set()
        self._running: set[asyncio.Task[Any]] = set()

    @contextmanager
    def running(self) -> Iterator[None]:
        """A request counts as running for as long as its task is in this block."""
        task = asyncio.current_task()
        assert task is not None
        self._running.add(task)
        try:
            yield
        finally:
            self._running.discard(task)

    def close(self) -> None:
        self.is_closed = True
        for callback in list(self.close_callbacks):
            callback()

    async def wait_until_idle(self, timeout_secs: float) -> bool:
        """Whether all requests have ended within the timeout."""
        if not self._running:
            return True
        _, left = await asyncio.wait(self._running, timeout=timeout_secs)
        return not left

    def cancel_running(self) -> None:
        self.has_cancelled = True
        for task in self._running:
            task.cancel()


request_gate = RequestGate()
