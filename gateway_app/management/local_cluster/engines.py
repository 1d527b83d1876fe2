"""PostgreSQL and Redis of a local cluster, on loopback ports and with passwords of their own."""

import hashlib
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import psycopg
import redis
from django.core.management.base import CommandError
from psycopg import sql

from gateway_app.config.secrets import kept_secret
from gateway_app.management.local_cluster.children import Child
from gateway_app.management.local_cluster.programs import Report, is_root, require_program

USER = "hermes"
DATABASE = "hermes"
SYSTEM_USER = "postgres"  # of Debian's package
ROOTS_FOLDER = Path("/var/lib/hermes-cluster")  # the home of root is closed to that user
CONNECT_SECS = 2


def default_data(home: Path) -> Path:
    """Where the database is kept from run to run; PostgreSQL's own user must reach it."""
    if not is_root():
        return home / "cluster" / "postgresql"
    digest = hashlib.sha256(str(home).encode()).hexdigest()[:12]
    return ROOTS_FOLDER / digest


class PostgreSQL:
    def __init__(self, data: Path, folder: Path, port: int, report: Report) -> None:
        self._data = data
        self._password = kept_secret(folder / "postgresql_password")
        self._port = port
        self._report = report
        initdb = require_program("initdb", "postgresql", report)
        self._user = SYSTEM_USER if is_root() else ""
        if not (data / "PG_VERSION").exists():
            self._create(initdb)
        program = require_program("postgres", "postgresql", report)
        self.child = Child(
            "PostgreSQL",
            [program, "-D", str(data), "-p", str(port), *_settings()],
            folder / "postgresql.log",
            self._answers,
            user=self._user,
            stop_signal=signal.SIGINT,  # ends its sessions; SIGTERM would wait for them
        )

    @property
    def url(self) -> str:
        return f"postgres://{USER}:{self._password}@127.0.0.1:{self._port}/{DATABASE}"

    def create_database(self) -> None:
        with self._connect() as connection:
            found = connection.execute(
                "SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]
            ).fetchone()
            if found is None:
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))

    def _create(self, initdb: str) -> None:
        self._report(f"Creating a database in {self._data} ...")
        self._data.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w") as password:  # mode 0600
            password.write(self._password)
            password.flush()
            command = [initdb, "-D", str(self._data), "-U", USER, "-A", "scram-sha-256"]
            command += ["-E", "UTF8", "--locale=C.UTF-8", f"--pwfile={password.name}"]
            if self._user:
                shutil.chown(self._data, self._user, self._user)
                shutil.chown(password.name, self._user)
                command = ["runuser", "-u", self._user, "--", *command]
            done = subprocess.run(  # noqa: S603
                command, cwd="/", capture_output=True, text=True, check=False
            )
        if done.returncode:
            shutil.rmtree(self._data, ignore_errors=True)
            raise CommandError(f"initdb failed: {done.stderr.strip()}")

    def _connect(self) -> psycopg.Connection:
        return psycopg.connect(
            host="127.0.0.1",
            port=self._port,
            user=USER,
            password=self._password,
            dbname="postgres",
            autocommit=True,
            connect_timeout=CONNECT_SECS,
        )

    def _answers(self) -> bool:
        try:
            with self._connect():
                return True
        except psycopg.OperationalError:
            return False


def _settings() -> list[str]:
    chosen = {"listen_addresses": "127.0.0.1", "unix_socket_directories": ""}
    arguments: list[str] = []
    for name, value in chosen.items():
        arguments += ["-c", f"{name}={value}"]
    return arguments


class Redis:
    """Carries hints only: nothing of it is kept."""

    def __init__(self, folder: Path, port: int, report: Report) -> None:
        password = kept_secret(folder / "redis_password")
        self.url = f"redis://:{password}@127.0.0.1:{port}/0"
        self._client = redis.Redis.from_url(self.url, socket_timeout=CONNECT_SECS)
        program = require_program("redis-server", "redis-server", report)
        # Standard input, as other users can read the arguments of a program.
        lines = [f"port {port}", "bind 127.0.0.1", 'save ""', f"requirepass {password}"]
        lines.append(f"dir {os.path.abspath(folder)}")
        self.child = Child(
            "Redis",
            [program, "-"],
            folder / "redis.log",
            self._answers,
            stdin="\n".join(lines) + "\n",
        )

    def _answers(self) -> bool:
        try:
            return bool(self._client.ping())
        except redis.RedisError:
            return False
