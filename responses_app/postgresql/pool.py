"""The connections that requests share, in a pool."""

import select
from typing import Any

from psycopg import OperationalError
from psycopg_pool import ConnectionPool

from responses_app.postgresql.driver import LimitedConnection


class RequestPool(ConnectionPool[LimitedConnection]):
    """psycopg's pool, which fails the waiting requests when no connection can be made for them."""

    _failure = ""

    def __init__(self, connect_params: dict[str, Any], **options: Any) -> None:
        super().__init__(
            kwargs={**connect_params, "autocommit": True},
            connection_class=LimitedConnection,
            check=self.check_idle,
            open=False,
            # psycopg tries twice before it gives up; the next request begins anew.
            reconnect_timeout=0,
            **options,
        )

    def check_idle(self, connection: LimitedConnection) -> None:
        """Without a round trip: the socket of a connection that the server closed can be read."""
        socket = select.poll()
        socket.register(connection.fileno(), select.POLLIN)
        if socket.poll(0):
            connection.pgconn.finish()
            # The others are as old; psycopg would try one after the other, with longer pauses.
            self.drain()
            raise OperationalError("the connection was closed while it was idle")

    def _connect(self, timeout: float | None = None) -> LimitedConnection:
        try:
            return super()._connect(timeout)
        except OperationalError as error:
            self._failure = str(error)
            raise

    def reconnect_failed(self) -> None:
        """Fail the waiting requests now: each would wait to its time limit for the same error."""
        with self._lock:
            if self._nconns:
                return  # one of these will be free
            waiting = list(self._waiting)
            self._waiting.clear()
        for request in waiting:
            request.fail(OperationalError(self._failure))
