"""The door of this process: who is inside, and whether anybody else may come in."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Door:
    """Closed for good when the process is about to end; readiness and the edge ask here."""

    def __init__(self) -> None:
        self.is_closed = False
        self.is_cleared = False  # and whoever was still inside is turned out
        self.farewells: set[Callable[[], None]] = (
            set()
        )  # of those who would stay for ever, called when it closes
        self._inside: set[asyncio.Task[Any]] = set()

    @contextmanager
    def entered(self) -> Iterator[None]:
        """A request is inside for as long as its task is in this block."""
        task = asyncio.current_task()
        assert task is not None
        self._inside.add(task)
        try:
            yield
        finally:
            self._inside.discard(task)

    def close(self) -> None:
        self.is_closed = True
        for say_farewell in list(self.farewells):
            say_farewell()

    async def emptied(self, timeout_secs: float) -> bool:
        """Wait until all requests have ended, but not for ever."""
        if not self._inside:
            return True
        _, left = await asyncio.wait(self._inside, timeout=timeout_secs)
        return not left

    def turn_out(self) -> None:
        self.is_cleared = True
        for task in self._inside:
            task.cancel()


door = Door()
