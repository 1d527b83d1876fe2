"""Who may read a document now: a few at once, and one for each owner of the documents."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from contextvars import ContextVar

# The owner of the turn that runs; a task of a turn inherits it.
current_owner: ContextVar[int | None] = ContextVar("current_owner", default=None)


class ReaderQueue:
    """Owners take turns: the documents of one wait for each other, and not those of the others."""

    def __init__(self, total: int) -> None:
        self._free = total
        self._reading: set[int | None] = set()
        # Owner -> its documents that wait. The first owner is the one that waits longest.
        self._waiting: dict[int | None, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def slot(self, owner: int | None) -> AsyncGenerator[None]:
        await self._enter(owner)
        try:
            yield
        finally:
            self._leave(owner)

    async def _enter(self, owner: int | None) -> None:
        admitted = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner, deque()).append(admitted)
        self._admit()
        try:
            await admitted
        except asyncio.CancelledError:
            if admitted.cancelled():
                self._forget(owner, admitted)
            else:
                self._leave(owner)
            raise

    def _leave(self, owner: int | None) -> None:
        self._reading.remove(owner)
        self._free += 1
        self._admit()

    def _admit(self) -> None:
        for owner in list(self._waiting):
            if self._free and owner not in self._reading:
                self._admit_one_of(owner)

    def _admit_one_of(self, owner: int | None) -> None:
        waiting = self._waiting.pop(owner)
        while waiting:
            admitted = waiting.popleft()
            if not admitted.done():  # or its turn was cancelled a moment ago
                self._free -= 1
                self._reading.add(owner)
                admitted.set_result(None)
                break
        if waiting:
            self._waiting[owner] = waiting  # behind the others

    def _forget(self, owner: int | None, admitted: asyncio.Future[None]) -> None:
        waiting = self._waiting.get(owner)
        if waiting is None or admitted not in waiting:
            return
        waiting.remove(admitted)
        if not waiting:
            del self._waiting[owner]
