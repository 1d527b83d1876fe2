"""Several processes on one PostgreSQL and one Redis, as on several machines."""

import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import redis

from tests.support.migrated_database import Database
from tests.support.ports import free_port
from tests.support.server import Server, eventually
from tests.support.stored_rows import count_rows

SHORT_LEASES = {"HERMES_LEASE_SECS": "2", "HERMES_SWEEP_SECS": "0.2"}


class RedisServer:
    """A real server on a loopback port, without files."""

    def __init__(self, command: list[str], folder: Path, host: str, *others: str) -> None:
        self.command = command
        self.folder = folder
        self.hosts = (host, *others)
        self.port = free_port()
        self.url = f"redis://{host}:{self.port}/0"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *options: str) -> None:
        listening = ["--port", str(self.port), "--bind", *self.hosts, "--protected-mode", "no", "--save", ""]
        command = [*self.command, *listening, *options]
        self.process = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.DEVNULL)
        eventually(self._answers, 10, "the first answer of Redis")

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def execute(self, *command: Any) -> Any:
        with redis.Redis.from_url(self.url) as client:
            return client.execute_command(*command)

    def subscribers(self, group: str = "hints*") -> int:
        """How many processes follow a group of hints."""
        channels = self.execute("PUBSUB", "CHANNELS", f"*__group__{group}")
        return sum(self.execute("PUBSUB", "NUMSUB", channel)[1] for channel in channels)

    def _answers(self) -> bool:
        try:
            return bool(self.execute("PING"))
        except redis.RedisError:
            return False


@contextmanager
def redis_server(host: str = "127.0.0.1", *others: str, prefix: Sequence[str] = ()) -> Iterator[RedisServer]:
    """``others``: further addresses; ``prefix``: a command that runs the program elsewhere."""
    program = shutil.which("redis-server")
    assert program is not None
    folder = Path(tempfile.mkdtemp(prefix="hermes-redis-"))
    server = RedisServer([*prefix, program], folder, host, *others)
    server.start()
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


class WorkerProcess(Server):
    """``manage.py runworker generate``; its address has health and metrics."""

    command: tuple[str, ...] = ("manage.py", "runworker", "generate")


class DistantWorker(WorkerProcess):
    """In another network namespace, where only its log can be seen."""

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.log
        return "A worker of Hermes Site" in self.log


@contextmanager
def frozen(member: Server) -> Iterator[None]:
    process = member.process
    assert process is not None
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


class Cluster:
    """Web processes and workers on one database, with one home for all."""

    def __init__(self, database: Database, home: Path, redis: RedisServer, **env: str) -> None:
        assert database.cluster is not None
        self.postgres = database.cluster
        self.redis = redis
        self.env = {"REDIS_URL": redis.url, **SHORT_LEASES, **env}
        self.first = database.server(home, Server, **self.env)
        self.home = home
        self.members: list[Server] = []

    @property
    def webs(self) -> list[Server]:
        return [member for member in self.members if not isinstance(member, WorkerProcess)]

    def web(self, **env: str) -> Server:
        return self.member(Server, **env)

    def worker(self, **env: str) -> Server:
        """Before the first web process, or that may take the turns that come until it sees the worker."""
        return self.member(WorkerProcess, **env)

    def member(self, kind: type[Server], **env: str) -> Server:
        database_url = {"DATABASE_URL": self.first.env["DATABASE_URL"]}
        member = kind(self.home, **{**database_url, **self.env, **env})
        member.env["HERMES_WORKER_PORT"] = str(member.port)
        member.log_path = self.home / f"server{len(self.members)}.log"
        self.members.append(member)
        known = count_rows(self.first, "runtimeprocess")
        member.start()
        eventually(lambda: count_rows(self.first, "runtimeprocess") > known, 20, "its heartbeat")
        return member

    def stop(self) -> None:
        for member in self.members:
            member.kill()
