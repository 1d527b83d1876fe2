"""The databases the suite runs on: SQLite files, and a PostgreSQL server of its own."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
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

    def __init__(self, folder: Path, port: int, **settings: str) -> None:
        self.folder = folder
        self.port = port
        self.data = folder / "data"
        self.settings = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": str(folder),
            "fsync": "off",
            **settings,
        }

    def start(self) -> None:
        settings = [f"-c {name}={value}" for name, value in self.settings.items()]
        options = " ".join([f"-p {self.port}", *settings])
        self._control("-w", "-l", str(self.folder / "log"), "-o", options, "start")

    def stop(self, mode: str) -> None:
        """``fast`` notifies the clients and ends them; ``immediate`` is a crash."""
        self._control("-m", mode, "stop")

    @contextmanager
    def hung(self) -> Iterator[None]:
        """Every process stopped: the kernel goes on accepting and acknowledging, and no answer comes."""
        pids = self._pids()
        try:
            _signal_all(pids, signal.SIGSTOP)
            yield
        finally:
            _signal_all(pids, signal.SIGCONT)

    def _pids(self) -> list[int]:
        """The postmaster first, so that it starts none while the others are stopped."""
        postmaster = int((self.data / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text()
        return [postmaster, *map(int, children.split())]

    def connections_opened(self, name: str) -> int:
        """By clients of one database since the start; the setting ``log_connections`` must be on."""
        return (self.folder / "log").read_text().count(f"connection authorized: user=postgres database={name}")

    def trust(self, address: str) -> None:
        """Clients at this address need no password."""
        with (self.data / "pg_hba.conf").open("a") as rules:
            rules.write(f"host all all {address}/32 trust\n")
        self._control("reload")

    def _control(self, *arguments: str) -> None:
        pg_ctl = find_program("pg_ctl")
        assert pg_ctl is not None
        run_as_postgres(pg_ctl, "-D", str(self.data), *arguments)

    def url(self, name: str) -> str:
        return f"postgres://postgres@127.0.0.1:{self.port}/{name}"

    def execute(self, sql: str) -> None:
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(sql.encode())

    def dump(self, name: str, file: Path) -> None:
        self._run_client("pg_dump", "--no-owner", "--file", str(file), self.url(name))

    def restore(self, name: str, file: Path) -> None:
        self._run_client("psql", "--quiet", "--no-psqlrc", "--set=ON_ERROR_STOP=1", "--file", str(file), self.url(name))

    def _run_client(self, name: str, *arguments: str) -> None:
        program = find_program(name)
        assert program is not None
        subprocess.run([program, *arguments], check=True, stdout=subprocess.DEVNULL, timeout=60)

    def value(self, sql: str) -> Any:
        """The only column of the only row."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            row = connection.execute(sql.encode()).fetchone()
        assert row is not None
        return row[0]


@contextmanager
def unwritable(url: str, table: str) -> Iterator[None]:
    """A table that can be read; what writes to it waits."""
    with psycopg.connect(url) as session:
        session.execute(f"LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE".encode())
        yield


def _signal_all(pids: list[int], number: int) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


@contextmanager
def postgres_cluster(port: int, **settings: str) -> Iterator[PostgresCluster]:
    initdb = find_program("initdb")
    assert initdb is not None
    folder = Path(tempfile.mkdtemp(prefix="hermes-postgres-"))
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres", "postgres")
    cluster = PostgresCluster(folder, port, **settings)
    how = ("-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8")
    run_as_postgres(initdb, "-D", str(cluster.data), *how)
    cluster.start()
    try:
        yield cluster
    finally:
        cluster.stop("immediate")
        shutil.rmtree(folder, ignore_errors=True)


def run_as_postgres(*command: str) -> None:
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


def change(home: Path, database_url: str | None, sql: str, args: tuple[Any, ...]) -> int:
    """One statement that changes rows, committed; the number of rows."""
    if database_url is None or database_url.startswith("sqlite:"):
        path = (database_url or f"sqlite:///{home / 'hermes.sqlite3'}").removeprefix("sqlite:///")
        with closing(sqlite3.connect(path, timeout=20)) as connection, connection:
            return connection.execute(sql, args).rowcount
    with psycopg.connect(database_url) as postgres:
        return postgres.execute(sql.replace("?", "%s").encode(), args).rowcount


def _plain(value: Any) -> Any:
    if isinstance(value, dict | list):
        return json.dumps(value)
    return int(value) if isinstance(value, bool) else value
