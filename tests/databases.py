"""The databases the suite runs on: SQLite files, and a PostgreSQL server of its own."""

import json
import os
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

ROW = tuple[Any, ...]


def find_program(name: str) -> str | None:
    """On the path, or where Debian keeps the programs of its PostgreSQL packages."""
    kept = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return shutil.which(name) or (str(kept[-1]) if kept else None)


class PostgresCluster:
    """A real server on a loopback port, in a folder that goes away with it."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.port = port
        self.data = folder / "data"

    def start(self) -> None:
        where = f"-c listen_addresses=127.0.0.1 -c unix_socket_directories={self.folder}"
        options = f"-p {self.port} {where} -c fsync=off"
        self._control("-w", "-l", str(self.folder / "log"), "-o", options, "start")

    def stop(self, mode: str) -> None:
        """``fast`` tells the clients and ends them; ``immediate`` is a crash."""
        self._control("-m", mode, "stop")

    def _control(self, *arguments: str) -> None:
        pg_ctl = find_program("pg_ctl")
        assert pg_ctl is not None
        _as_postgres(pg_ctl, "-D", str(self.data), *arguments)

    def url(self, name: str) -> str:
        return f"postgres://postgres@127.0.0.1:{self.port}/{name}"

    def execute(self, sql: str) -> None:
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(sql.encode())


@contextmanager
def postgres_cluster(port: int) -> Iterator[PostgresCluster]:
    initdb = find_program("initdb")
    assert initdb is not None
    folder = Path(tempfile.mkdtemp(prefix="hermes-postgres-"))
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres", "postgres")
    cluster = PostgresCluster(folder, port)
    how = ("-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8")
    _as_postgres(initdb, "-D", str(cluster.data), *how)
    cluster.start()
    try:
        yield cluster
    finally:
        cluster.stop("immediate")
        shutil.rmtree(folder, ignore_errors=True)


def _as_postgres(*command: str) -> None:
    """PostgreSQL refuses to run as root."""
    prefix = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    done = subprocess.run(
        [*prefix, *command],
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        timeout=60,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def query(home: Path, database_url: str | None, sql: str, args: tuple[Any, ...]) -> list[ROW]:
    """Rows as SQLite would give them: JSON as text, booleans as numbers."""
    if database_url is None or database_url.startswith("sqlite:"):
        path = (database_url or f"sqlite:///{home / 'hermes.sqlite3'}").removeprefix("sqlite:///")
        connection = sqlite3.connect(path, timeout=10)
        try:
            return connection.execute(sql, args).fetchall()
        finally:
            connection.close()
    with psycopg.connect(database_url) as postgres:
        rows = postgres.execute(sql.replace("%", "%%").replace("?", "%s").encode(), args).fetchall()
    return [tuple(_plain(value) for value in row) for row in rows]


def _plain(value: Any) -> Any:
    if isinstance(value, dict | list):
        return json.dumps(value)
    return int(value) if isinstance(value, bool) else value
