"""psycopg, with a limit for every wait.

The kernel of a PostgreSQL server that hangs still acknowledges packets, so that no TCP timeout fires.
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

WAIT_SECS = 0.1  # psycopg's interval between checks for signals
CANCEL_SECS = 1.0  # a running server takes a cancellation in milliseconds
# PostgreSQL counts them as errors of a statement: a session of a server that takes no writes, such
# as a standby, and one that the server ended in the middle of a transaction.
ENDS_OF_SESSIONS = ("25006", "25P03", "25P04")


class LimitedConnection(psycopg.Connection[Any]):
    """Waits ``limit_secs`` for the end of each statement, where that is set."""

    limit_secs: float | None = None
    may_probe = False  # whether it also tries during an outage, and so finds its end

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
        except InternalError as error:
            if error.sqlstate not in ENDS_OF_SESSIONS:
                raise
            self.pgconn.finish()  # the next statement gets a session of its own
            raise OperationalError(str(error)) from error

    def _give_up(self, gen: PQGen[RV], interval: float) -> RV:
        """A running server cancels the statement on request; otherwise the connection is closed."""
        assert self.limit_secs is not None
        is_alive = self._request_cancel()
        cancel_secs = 0.0
        if is_alive:
            cancel_secs = CANCEL_SECS
        try:
            return super().wait(gen, interval, cancel_secs)
        except errors._WaitTimeout:
            reason = f"PostgreSQL has not answered for {self.limit_secs:g} s"
        self.pgconn.finish()
        if not is_alive:
            outage.begin(reason)
        raise OperationalError(reason)

    def _request_cancel(self) -> bool:
        """Whether the server took the request."""
        if not capabilities.has_cancel_safe():
            return False  # the older function has no limit of its own
        try:
            self.cancel_safe(timeout=CANCEL_SECS)
        except Error:
            return False
        return True


def _ending_outage(gen: PQGen[RV]) -> PQGen[RV]:
    """A response of the server ends the outage; a step that sends nothing does not."""
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
