"""Django's settings of a database, from its URL."""

import math
from pathlib import Path
from typing import Any

import dj_database_url
from django.core.exceptions import ImproperlyConfigured

from gateway_app.config.home import make_private, temporary_home, why_not_writable

SQLITE = "django.db.backends.sqlite3"
POSTGRESQL = "django.db.backends.postgresql"
POOLERS = ("none", "transaction")
# A server that a partition cut off would keep the sessions for two hours, and then take no others.
SERVER_KEEPALIVES = (
    "-c tcp_keepalives_idle=30 -c tcp_keepalives_interval=10 -c tcp_keepalives_count=3"
)
PREPARE_THRESHOLD = 5  # psycopg's own; Django turns it off, as some poolers lose what is prepared
MAX_WAITING = 500  # requests for a connection of the pool; each holds a thread

Database = dict[str, Any]


def read_database(
    url: str, timeout_secs: float, pool_size: int, pooler: str = "none"
) -> tuple[Database, str]:
    """The settings, and why the database is in a temporary folder; empty where it is not."""
    try:
        database: Database = dict(dj_database_url.parse(url))
    except (ValueError, dj_database_url.ParseError) as error:
        raise ImproperlyConfigured(f"DATABASE_URL cannot be understood: {error}") from error
    if database["ENGINE"] == SQLITE:
        return _sqlite(database)
    if database["ENGINE"] == POSTGRESQL:
        return _pooled(_postgresql(database, timeout_secs, pool_size), pooler), ""
    raise ImproperlyConfigured("DATABASE_URL must name a sqlite or a postgres database.")


def _sqlite(database: Database) -> tuple[Database, str]:
    file = Path(database["NAME"])
    folder = file.parent.resolve()
    reason = why_not_writable(folder, file.name)
    if reason:
        database["NAME"] = str(temporary_home(folder) / file.name)
    make_private(Path(database["NAME"]))
    database["ENGINE"] = "responses_app.sqlite3"
    database["OPTIONS"] = {
        # A deferred transaction that reads and then writes fails at once, whatever the timeout.
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        # Erased content is overwritten, also on freed pages, and is in no temporary file.
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; "
        "PRAGMA busy_timeout=20000; PRAGMA secure_delete=ON; PRAGMA temp_store=MEMORY",
    }
    return database, reason


def _postgresql(database: Database, timeout_secs: float, pool_size: int) -> Database:
    """Options of the URL win over the defaults; the pool is ours."""
    defaults = {
        "connect_timeout": max(2, math.ceil(timeout_secs)),  # libpq's minimum is 2 s
        "tcp_user_timeout": math.ceil(1000 * timeout_secs),
        "keepalives_idle": 30,
        "prepare_threshold": PREPARE_THRESHOLD,
    }
    pool = {
        "min_size": 0,
        "max_size": pool_size,
        "timeout": timeout_secs,
        "max_waiting": MAX_WAITING,
    }
    database["ENGINE"] = "responses_app.postgresql"
    database["OPTIONS"] = defaults | database.get("OPTIONS", {}) | {"pool": pool}
    return database


def _pooled(database: Database, pooler: str) -> Database:
    """Between two transactions, a pooler may give another connection: nothing of a session lasts."""
    if pooler == "transaction":
        database["DISABLE_SERVER_SIDE_CURSORS"] = True
        database["OPTIONS"]["prepare_threshold"] = None
    else:
        database["OPTIONS"].setdefault("options", SERVER_KEEPALIVES)
    return database
