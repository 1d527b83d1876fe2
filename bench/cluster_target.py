"""Two web processes and some workers on PostgreSQL and Redis, and one process in their stead, to be compared with."""

import subprocess
import time

from bench.model import HOST
from bench.targets import START_SECS, Postgresql, answers, free_port, start, stop
from tests.support.cluster import redis_server

WEBS = WORKERS = 2
COMMANDS = {"web": ["serve"], "worker": ["runworker", "generate"]}
PORTS = {"web": "API_SERVER_PORT", "worker": "HERMES_WORKER_PORT"}
Roles = dict[str, list[int]]  # the processes of each role


class InProcess(Postgresql):
    """One process that takes requests and runs turns. No process has a core of its own here."""

    name = "one process"
    is_pinned = False

    @property
    def roles(self) -> Roles:
        return {"web": self.pids[:1], "postgresql": self.pids[1:]}

    @property
    def web_ports(self) -> list[int]:
        return [self.port]


class Cluster(InProcess):
    name = "cluster"

    def __init__(self) -> None:
        super().__init__()
        self._members: list[subprocess.Popen[bytes]] = []
        self._roles: Roles = {}
        self._ports: dict[str, list[int]] = {}

    @property
    def roles(self) -> Roles:
        return self._roles

    @property
    def web_ports(self) -> list[int]:
        return self._ports["web"]

    def launch(self, model_port: int) -> None:
        redis = self._cleanup.enter_context(redis_server())
        assert redis.process is not None
        self.extra_env["REDIS_URL"] = redis.url
        self._roles = {"web": [], "worker": [], "postgresql": [], "redis": [redis.process.pid]}
        self._ports = {"web": [self.port], "worker": []}
        super().launch(model_port)
        postmaster = self.pids.pop()
        self._roles["postgresql"] = [postmaster]
        self._roles["web"] = list(self.pids)
        for _ in range(WORKERS):
            self._start_member("worker")
        for _ in range(WEBS - 1):
            self._start_member("web")
        self.pids += [postmaster, redis.process.pid]

    def _start_member(self, role: str) -> None:
        port = free_port()
        command = [self.python, "manage.py", *COMMANDS[role]]
        member = start(command, self.tree, self.env | {PORTS[role]: str(port)}, self.log)
        self._cleanup.callback(stop, member)
        self._members.append(member)
        self._roles[role].append(member.pid)
        self._ports.setdefault(role, []).append(port)
        self.pids.append(member.pid)
        _wait_for_health(role, member, port)

    def stop_one_worker(self) -> None:
        pid = self._roles["worker"].pop()
        self.pids.remove(pid)
        for member in self._members:
            if member.pid == pid:
                stop(member)


def _wait_for_health(role: str, member: "subprocess.Popen[bytes]", port: int) -> None:
    deadline = time.monotonic() + START_SECS
    while not answers(f"http://{HOST}:{port}/health", ""):
        if member.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"{role} on port {port} does not answer.")
        time.sleep(0.1)
