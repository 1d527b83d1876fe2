"""The backend that ``DATABASES`` names: how long a thread waits, and whose connection it uses."""

from typing import Any

from django.conf import settings
from django.db.backends.postgresql import base
from psycopg_pool import ConnectionPool

from responses_app.postgresql import driver
from responses_app.postgresql.driver import LimitedConnection
from responses_app.postgresql.limits import session_options
from responses_app.postgresql.outage import outage
from responses_app.postgresql.pool import RequestPool


class DatabaseWrapper(base.DatabaseWrapper):
    """One per thread. Commands wait without a limit; a server's threads call ``limit_waits``."""

    Database = driver
    is_limited = False
    is_pooled = False
    may_probe = False
    lock_wait_secs: float | None = None  # where no other thread uses the session
    _connection_pools: dict[str, ConnectionPool[Any]] = {}

    def limit_waits(
        self,
        *,
        is_pooled: bool = False,
        may_probe: bool = False,
        lock_wait_secs: float | None = None,
    ) -> None:
        """Before this thread's first query."""
        self.is_limited = True
        self.is_pooled = is_pooled
        self.may_probe = may_probe
        is_behind_pooler = self.settings_dict["DISABLE_SERVER_SIDE_CURSORS"]
        if not is_behind_pooler:  # which gives the settings of a session to another
            self.lock_wait_secs = lock_wait_secs

    @property
    def pool(self) -> ConnectionPool[Any] | None:
        if not self.is_pooled:
            return None
        if self.alias not in self._connection_pools:
            params = self.get_connection_params()
            options = self.settings_dict["OPTIONS"]["pool"]
            pool = RequestPool(params, configure=self._configure_pooled, **options)
            # Another thread may have been first.
            self._connection_pools.setdefault(self.alias, pool)
        return self._connection_pools[self.alias]

    def get_new_connection(self, conn_params: dict[str, Any]) -> LimitedConnection:
        if self.is_limited and not self.may_probe:
            outage.check()
        if self.lock_wait_secs is not None:
            limits = session_options(self.lock_wait_secs, conn_params.get("options", ""))
            conn_params = conn_params | {"options": limits}
        connection: LimitedConnection = super().get_new_connection(conn_params)
        if self.is_limited:
            connection.limit_secs = settings.HERMES_DATABASE_TIMEOUT
            connection.may_probe = self.may_probe
        return connection

    def _configure_pooled(self, connection: LimitedConnection) -> bool:
        """In a thread of the pool, which without a limit could wait for ever."""
        connection.limit_secs = settings.HERMES_DATABASE_TIMEOUT
        return bool(self._configure_connection(connection))  # type: ignore[attr-defined]
