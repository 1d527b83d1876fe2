"""Starts the parts of a local cluster in their order, starts again what ends, and stops all."""

import http.client
import sys
import time
from pathlib import Path

from django.conf import settings
from django.core.management.base import CommandError
from django.db import connection

from gateway_app.management.local_cluster.children import Child, free_ports, is_free
from gateway_app.management.local_cluster.engines import PostgreSQL, Redis
from gateway_app.management.local_cluster.programs import Report
from gateway_app.management.local_cluster.proxy import Proxy

WATCH_SECS = 0.5
RESTART_SECS = 1.0  # before a program that ended is started again
ANSWER_SECS = 2.0
COMMANDS = {"web": ("serve",), "worker": ("runworker", "generate")}
PORT_SETTINGS = {"web": "API_SERVER_PORT", "worker": "HERMES_WORKER_PORT"}


class Supervisor:
    def __init__(self, webs: int, workers: int, data: Path, report: Report) -> None:
        self._counts = {"web": webs, "worker": workers}
        self._data = data
        self._report = report
        self._folder: Path = settings.HERMES_HOME / "cluster"
        self._folder.mkdir(mode=0o700, exist_ok=True)
        self.port: int = settings.API_SERVER_PORT
        self._ports = free_ports(self.port + 1)
        self._env: dict[str, str] = {}
        self._engines: list[Child] = []
        self._members: list[Child] = []
        self._proxy: Proxy | None = None
        self._ended_at: dict[str, float] = {}

    # -- the start ----------------------------------------------------------------------
    def start(self) -> None:
        if not is_free(self.port):
            raise CommandError(
                f"Port {self.port} is taken. Is another server running? "
                "API_SERVER_PORT chooses another port."
            )
        self._start_postgresql()
        self._start_redis()
        self._migrate()
        web_ports = self._start_members()
        self._proxy = Proxy(self._folder / "nginx.log", self.port, web_ports, self._report)
        self._start(self._proxy.child, f"http://127.0.0.1:{self.port}")

    def _start_postgresql(self) -> None:
        if connection.vendor == "postgresql":
            self._report("PostgreSQL: as set in DATABASE_URL")
            return
        port = next(self._ports)
        engine = PostgreSQL(self._data, self._folder, port, self._report)
        self._engines.append(engine.child)
        self._start(engine.child, f"port {port}, data in {self._data}")
        engine.create_database()
        self._env["DATABASE_URL"] = engine.url

    def _start_redis(self) -> None:
        if settings.REDIS_URL:
            self._report("Redis: as set in REDIS_URL")
            return
        port = next(self._ports)
        engine = Redis(self._folder, port, self._report)
        self._engines.append(engine.child)
        self._start(engine.child, f"port {port}")
        self._env["REDIS_URL"] = engine.url

    def _migrate(self) -> None:
        self._report("Migrating the database ...")
        prepared = Child(
            "migrate", _manage("migrate", "--verbosity", "0"), self._log("migrate"), bool, self._env
        )
        self._members.append(prepared)  # Ctrl-C ends it too
        prepared.start()
        assert prepared.process is not None
        if prepared.process.wait():
            raise CommandError(f"The migration failed:\n{prepared.last_lines()}")
        self._members.remove(prepared)

    def _start_members(self) -> list[int]:
        """All at once; the ports of the web processes."""
        ports: dict[str, list[int]] = {"web": [], "worker": []}
        for role, count in self._counts.items():
            for number in range(1, count + 1):
                port = next(self._ports)
                ports[role].append(port)
                name = f"{role} {number}"
                env = self._env | {PORT_SETTINGS[role]: str(port)}
                member = Child(name, _manage(*COMMANDS[role]), self._log(name), _Health(port), env)
                self._members.append(member)
                member.start()
        for member, port in zip(self._members, ports["web"] + ports["worker"], strict=True):
            self._await(member, f"http://127.0.0.1:{port}/health, log {member.log}")
        return ports["web"]

    def _start(self, child: Child, what: str) -> None:
        child.start()
        self._await(child, what)

    def _await(self, child: Child, what: str) -> None:
        child.wait_until_ready()
        assert child.process is not None
        self._report(f"{child.name}: {what}, pid {child.process.pid}")

    def _log(self, name: str) -> Path:
        return self._folder / f"{name.replace(' ', '')}.log"

    # -- while it runs ------------------------------------------------------------------
    def watch_forever(self) -> None:
        while True:
            for child in self._children():
                self._watch(child)
            time.sleep(WATCH_SECS)

    def _watch(self, child: Child) -> None:
        if child.is_running:
            self._ended_at.pop(child.name, None)
            return
        now = time.monotonic()
        stays_out = child.has_exited_well and child in self._members  # an operator has drained it
        if child.name not in self._ended_at:
            self._ended_at[child.name] = now
            outlook = "it stays out" if stays_out else "starting it again ..."
            self._report(f"{child.name} ended ({child.exit_reason()}); {outlook}")
        elif stays_out:
            return
        elif now - self._ended_at[child.name] >= RESTART_SECS:
            self._ended_at[child.name] = now
            child.start()

    def _children(self) -> list[Child]:
        children = self._engines + self._members
        if self._proxy is not None:
            children.append(self._proxy.child)
        return children

    # -- the end ------------------------------------------------------------------------
    def stop(self) -> None:
        """The members first, as they store what they have; then what they stand on."""
        for group in (self._members, self._children()):
            for child in group:
                child.end()
            for child in group:
                child.wait()
        self._remove_files()

    def kill(self) -> None:
        for child in self._children():
            child.kill()
        self._remove_files()

    def _remove_files(self) -> None:
        if self._proxy is not None:
            self._proxy.remove_files()


class _Health:
    """Whether a member answers; callable, as a child expects."""

    def __init__(self, port: int) -> None:
        self._port = port

    def __call__(self) -> bool:
        client = http.client.HTTPConnection("127.0.0.1", self._port, timeout=ANSWER_SECS)
        try:
            client.request("GET", "/health")
            return client.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            client.close()


def _manage(*arguments: str) -> list[str]:
    return [sys.executable, str(settings.BASE_DIR / "manage.py"), *arguments]
