"""psycopg, with a limit for every wait.

A PostgreSQL that hangs still acknowledges what it is sent, so that no timeout of TCP fires.
"""

from typing import Any, Self, TypeVar, cast

import psycopg
from psycopg import capabilities
from psycopg import errors as errors

# Django reads the exceptions and ``connect`` from the module of its driver.
from psycopg.abc import PQGen
from psycopg.dbapi20 import Binary as Binary
from psycopg.errors import DatabaseError as DatabaseError
from psycopg.errors import DataError as DataError
from psycopg.errors import Error as Error
from psycopg.errors import IntegrityError as IntegrityError
from psycopg.errors import InterfaceError as InterfaceError
from psycopg.errors import InternalError as InternalError
from psycopg.errors import NotSupportedError as NotSupportedError
from psycopg.errors import OperationalError as OperationalError
from psycopg.errors import ProgrammingError as ProgrammingError

from responses_app.postgresql.outage import outage

RV = TypeVar("RV")

WAIT_SECS = 0.1  # between two looks at signals, as psycopg has it
CANCEL_SECS = 1.0  # a server that lives takes a cancellation in milliseconds


class LimitedConnection(psycopg.Connection[Any]):
    """Waits ``limit_secs`` for the end of each statement, where that is set."""

    limit_secs: float | None = None
    may_probe = False  # tries also during an outage, and so finds its end

    @classmethod
    def connect(cls, *args: Any, **params: Any) -> Self:
        try:
            connection = super().connect(*args, **params)
        except errors.ConnectionTimeout:
            outage.begin(f"PostgreSQL has not answered for {params.get('connect_timeout')} s")
            raise
        outage.end()
        return connection

    def wait(self, gen: PQGen[RV], interval: float = WAIT_SECS, timeout: float | None = None) -> RV:
        if self.limit_secs is None or timeout is not None:
            return super().wait(gen, interval, timeout)
        if not self.may_probe:
            outage.check()
        if outage.is_known:
            gen = _ending_outage(gen)
        try:
            return super().wait(gen, interval, self.limit_secs)
        except errors._WaitTimeout:
            return self._give_up(gen, interval)

    def _give_up(self, gen: PQGen[RV], interval: float) -> RV:
        """A server that lives ends the statement on request; otherwise the connection is closed."""
        assert self.limit_secs is not None
        is_alive = self._asks_to_cancel()
        try:
            return super().wait(gen, interval, CANCEL_SECS if is_alive else 0)
        except errors._WaitTimeout:
            reason = f"PostgreSQL has not answered for {self.limit_secs:g} s"
        self.pgconn.finish()
        if not is_alive:
            outage.begin(reason)
        raise OperationalError(reason)

    def _asks_to_cancel(self) -> bool:
        if not capabilities.has_cancel_safe():
            return False  # the older function has no limit of its own
        try:
            self.cancel_safe(timeout=CANCEL_SECS)
        except Error:
            return False
        return True


def _ending_outage(gen: PQGen[RV]) -> PQGen[RV]:
    """An answer ends the outage. A step that sends nothing, as a change of autocommit, is no answer."""
    try:
        state = next(gen)
    except StopIteration as finished:
        return cast(RV, finished.value)
    while True:
        try:
            state = gen.send((yield state))
        except StopIteration as finished:
            outage.end()
            return cast(RV, finished.value)


connect = LimitedConnection.connect
