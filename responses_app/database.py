"""The database of this process: work runs in the writer thread or in the reader pool."""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from django.core.exceptions import SynchronousOnlyOperation
from django.db import connections, transaction

from responses_app.eventlog.availability import run_query
from responses_app.eventlog.jobs import Call
from responses_app.eventlog.throttled_log import ThrottledLog
from responses_app.eventlog.writer import Writer
from responses_app.models.recent import is_renewal_due, renew_recent
from responses_app.postgresql.threads import limit_waits
from responses_app.protocol.errors import StorageUnavailable

T = TypeVar("T")

logger = logging.getLogger(__name__)

RETRY_SECS = 0.5  # between tries while the database is unavailable
READ_THREADS = 4
CLOSE_SECS = 10


class Database:
    """One writer thread and a few reader threads, each with its own connection."""

    def __init__(self) -> None:
        self.writer = Writer()
        self._readers = ThreadPoolExecutor(
            READ_THREADS, thread_name_prefix="database-reader", initializer=limit_waits
        )
        self._background: set[asyncio.Task[Any]] = set()
        self._is_renewing = False
        self.unavailable_log = ThrottledLog(logger, "Work waits for the database")

    def close(self) -> None:
        """Commit what is pending and close every connection."""
        self.writer.stop()
        all_threads = threading.Barrier(READ_THREADS)  # so that each thread closes its own

        def close_connections() -> None:
            all_threads.wait(CLOSE_SECS)
            connections.close_all()

        closing = [self._readers.submit(close_connections) for _ in range(READ_THREADS)]
        for closed in closing:
            closed.result()
        self._readers.shutdown()

    def submit(
        self, work: Callable[[], T], then: Callable[[T], None] | None = None, response_id: str = ""
    ) -> "Future[T]":
        """Run ``work`` in a transaction of the writer, and ``then`` on the event loop after the commit.

        With ``response_id`` it never overtakes an earlier append to that response.
        A process without a running writer (a command, a shell) does the work itself; other
        processes notice by their own polls.
        """
        job = Call(work, then, response_id)
        if self.writer.is_running:
            self.writer.submit(job)
        else:
            with transaction.atomic():
                job.future.set_result(work())
        return job.future

    async def write(
        self, work: Callable[[], T], then: Callable[[T], None] | None = None, response_id: str = ""
    ) -> T:
        """``submit``, and wait for the result. Raises StorageUnavailable during an outage."""
        if not self.writer.is_running:  # the work continues after the next start
            raise StorageUnavailable("the server is shutting down")
        written = self.submit(work, then, response_id)
        if self.writer.loop is asyncio.get_running_loop():
            return await _delivered(written)
        return await asyncio.wrap_future(written)

    async def write_with_retry(
        self, work: Callable[[], T], then: Callable[[T], None] | None = None, response_id: str = ""
    ) -> T:
        """``write`` for a caller that can't give up: tried until the database is available."""
        return await self._until_available(partial(self.write, work, then, response_id))

    def write_later(self, work: Callable[[], T], then: Callable[[T], None] | None = None) -> None:
        """``write`` without waiting, tried until the database is available or the writer stops."""
        self._run_in_background(self._write_while_running(work, then))

    async def read(self, query: Callable[..., T], *args: Any) -> T:
        """Run a query in a reader thread; Channels' own helper shares one thread for all."""
        return await asyncio.get_running_loop().run_in_executor(
            self._readers, run_query, query, *args
        )

    async def look_up(self, query: Callable[..., T], *args: Any) -> T:
        """``read``; on the event loop itself where everything it needs is known.

        Django refuses to query there. Then the query runs once more, in a reader thread.
        """
        try:
            found = query(*args)
        except SynchronousOnlyOperation:
            return await self.read(query, *args)
        if is_renewal_due() and not self._is_renewing and self.writer.is_running:
            self._is_renewing = True
            self._run_in_background(self._renew_recent())
        return found

    async def read_with_retry(self, query: Callable[..., T], *args: Any) -> T:
        """``read`` for a caller that can't give up: tried until the database is available."""
        return await self._until_available(partial(self.read, query, *args))

    async def look_up_with_retry(self, query: Callable[..., T], *args: Any) -> T:
        return await self._until_available(partial(self.look_up, query, *args))

    def _run_in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _renew_recent(self) -> None:
        try:
            await self.read(renew_recent)
        except StorageUnavailable as error:
            self.unavailable_log.error(error)
        finally:
            self._is_renewing = False

    async def _write_while_running(
        self, work: Callable[[], T], then: Callable[[T], None] | None
    ) -> None:
        while self.writer.is_running:
            try:
                await self.write(work, then)
                return
            except StorageUnavailable as error:
                self.unavailable_log.error(error)
                await asyncio.sleep(RETRY_SECS)

    async def _until_available(self, attempt: Callable[[], Awaitable[T]]) -> T:
        while True:
            try:
                return await attempt()
            except StorageUnavailable as error:
                self.unavailable_log.error(error)
                await asyncio.sleep(RETRY_SECS)


def _delivered(written: "Future[T]") -> "asyncio.Future[T]":
    """For a caller on the event loop to which the writer delivers.

    ``asyncio.wrap_future`` expects the result from a thread: it wakes the loop through a socket.
    """
    waiter: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    def pass_on(written: "Future[T]") -> None:
        if waiter.done():
            return  # the caller has stopped waiting
        error = written.exception()
        if error is not None:
            waiter.set_exception(error)
        else:
            waiter.set_result(written.result())

    written.add_done_callback(pass_on)
    return waiter


database = Database()
