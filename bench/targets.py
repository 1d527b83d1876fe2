"""What is measured: each target is started by the harness, pinned to the server's core, and stopped afterwards."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from contextlib import ExitStack, suppress
from pathlib import Path
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from bench.clocks import cores
from bench.model import HOST, MODEL
from tests.support.databases import find_program, postgres_cluster

ROOT = Path(__file__).resolve().parent.parent
START_SECS = 120.0  # LiteLLM on a busy machine
STOP_SECS = 30.0
CHANGING = ("HERMES_", "API_SERVER_", "DATABASE_", "REDIS_", "LITELLM_", "DJANGO_", "MAKE", "MFLAGS")
LITELLM_KEY = "sk-bench-0123456789"
LITELLM_CONFIG = """\
model_list:
  - model_name: {model}
    litellm_params: {{model: openai/{model}, api_base: "http://{host}:{port}/v1", api_key: none}}
    model_info: {{supports_native_streaming: true}}
general_settings: {{master_key: {key}}}
litellm_settings: {{telemetry: false}}
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def pinned(core: int, command: list[str]) -> list[str]:
    """Through taskset, so that whatever the command starts stays there too."""
    if shutil.which("taskset") is None or cores()[0] == cores()[1]:
        return command
    return ["taskset", "-c", str(core), *command]


def start(command: list[str], cwd: Path, env: dict[str, str], log: Path) -> "subprocess.Popen[bytes]":
    with log.open("ab") as written:
        return subprocess.Popen(
            command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=written, stderr=written, start_new_session=True
        )


def stop(process: "subprocess.Popen[bytes]") -> None:
    with suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_SECS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def clean_environment(**changes: str) -> dict[str, str]:
    """Without variables that would change how a target behaves."""
    kept = {}
    for name, value in os.environ.items():
        if not name.startswith(CHANGING):
            kept[name] = value
    return kept | changes


class Target(ABC):
    """A base URL, and the processes behind it."""

    name: str
    model = "default"
    key = "none"
    stores_responses = False

    def __init__(self) -> None:
        self.url = ""
        self.pids: list[int] = []

    @abstractmethod
    def start(self, model_port: int) -> None: ...

    def stop(self) -> None:
        return

    @property
    def client(self) -> dict[str, str | int]:
        """For a job of the client, without its API."""
        address = urlsplit(self.url)
        return {
            "host": address.hostname or HOST,
            "port": address.port or 80,
            "prefix": address.path.rstrip("/"),
            "key": self.key,
            "model": self.model,
        }


class Direct(Target):
    """The stub model itself: what no server can be faster than."""

    name = "direct"
    model = MODEL

    def start(self, model_port: int) -> None:
        self.url = f"http://{HOST}:{model_port}/v1"


class Url(Target):
    """A server that runs already, in front of the model on --model-port."""

    def __init__(self, name: str, url: str, key: str, model: str) -> None:
        super().__init__()
        self.name, self.url, self.key, self.model = name, url, key, model

    def start(self, model_port: int) -> None:
        return


class Started(Target):
    """A server in a process and a folder of its own."""

    is_pinned = True

    def __init__(self, tree: Path = ROOT, env: dict[str, str] | None = None) -> None:
        super().__init__()
        self.tree = tree
        self.extra_env = env or {}
        self.home = Path()
        self.port = 0
        self.process: subprocess.Popen[bytes] | None = None
        self._cleanup = ExitStack()

    @abstractmethod
    def launch(self, model_port: int) -> None: ...

    @property
    def log(self) -> Path:
        return self.home / "bench-server.log"

    def start(self, model_port: int) -> None:
        self.home = Path(self._cleanup.enter_context(tempfile.TemporaryDirectory(prefix=f"bench-{self.name}-")))
        self.port = free_port()
        self.url = f"http://{HOST}:{self.port}/v1"
        try:
            self.launch(model_port)
            self._wait_for_answer()
        except BaseException:
            self.stop()
            raise

    def run(self, command: list[str], cwd: Path, env: dict[str, str]) -> None:
        if self.is_pinned:
            command = pinned(cores()[0], command)
        self.process = start(command, cwd, env, self.log)
        self.pids.insert(0, self.process.pid)

    def stop(self) -> None:
        if self.process is not None:
            stop(self.process)
        self.process = None
        self.pids.clear()
        self._cleanup.close()

    def _wait_for_answer(self) -> None:
        assert self.process is not None
        deadline = time.monotonic() + START_SECS
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.name} ended while it started:\n{self.log.read_text()[-3000:]}")
            if answers(f"{self.url}/models", self.key):
                return
            time.sleep(0.1)
        raise RuntimeError(f"{self.name} did not answer within {START_SECS:.0f} s:\n{self.log.read_text()[-3000:]}")


def answers(url: str, key: str) -> bool:
    try:
        with urlopen(Request(url, headers={"Authorization": f"Bearer {key}"}), timeout=5) as reply:
            return bool(reply.status == 200)
    except (URLError, OSError):
        return False


class Serve(Started):
    """This server as ``make run`` starts it: Daphne, SQLite with synchronous=FULL, every feature on."""

    name = "serve"
    stores_responses = True
    database_url: str | None = None

    @property
    def command(self) -> list[str]:
        return ["manage.py", "serve"]

    @property
    def python(self) -> str:
        own = self.tree / ".venv" / "bin" / "python"
        return str(own) if own.exists() else sys.executable

    @property
    def env(self) -> dict[str, str]:
        """Without byte code forbidden, each start would compile everything."""
        variables = {"HERMES_HOME": str(self.home), "API_SERVER_PORT": str(self.port), "PYTHONDONTWRITEBYTECODE": ""}
        if self.database_url:
            variables["DATABASE_URL"] = self.database_url
        return clean_environment(DJANGO_SETTINGS_MODULE="hermes_site.settings", **variables) | self.extra_env

    def launch(self, model_port: int) -> None:
        self.extra_env = {
            "HERMES_PROVIDER": "custom",
            "HERMES_BASE_URL": f"http://{HOST}:{model_port}/v1",
            "HERMES_MODEL": MODEL,
            "HERMES_SHUTDOWN_GRACE": "1",  # restarts must not wait for turns of the measurement before
        } | self.extra_env
        self.manage("migrate", "--verbosity", "0")
        self.run([self.python, *self.command], self.tree, self.env)
        self.key = (self.home / "api_key").read_text().strip()

    def manage(self, *arguments: str) -> str:
        done = subprocess.run(
            [self.python, "manage.py", *arguments], cwd=self.tree, env=self.env, capture_output=True, text=True
        )
        if done.returncode:
            raise RuntimeError(f"manage.py {arguments[0]} failed:\n{done.stderr[-3000:]}")
        return done.stdout.strip()


class Uvicorn(Serve):
    """The same application under another server. ``serve`` makes the first user, whom the root key belongs to."""

    name = "uvicorn"

    def launch(self, model_port: int) -> None:
        self.manage("migrate", "--verbosity", "0")
        self.manage("shell", "-c", "from gateway_app.operations.first_start import ensure_admin; ensure_admin()")
        super().launch(model_port)

    @property
    def command(self) -> list[str]:
        return ["-m", "uvicorn", "hermes_site.asgi:application", "--port", str(self.port), "--log-level", "warning"]


class Postgresql(Serve):
    """``serve`` on a PostgreSQL server of its own, which syncs each commit; its CPU counts as the server's."""

    name = "postgresql"

    def launch(self, model_port: int) -> None:
        if find_program("initdb") is None:
            raise RuntimeError("PostgreSQL is not installed: apt-get install postgresql")
        cluster = self._cleanup.enter_context(postgres_cluster(free_port(), fsync="on"))
        postmaster = int((cluster.data / "postmaster.pid").read_text().split()[0])
        if self.is_pinned and cores()[0] != cores()[1]:
            os.sched_setaffinity(postmaster, {cores()[0]})  # later processes inherit it
        cluster.execute("CREATE DATABASE bench")
        self.database_url = cluster.url("bench")
        super().launch(model_port)
        self.pids.append(postmaster)


class Litellm(Started):
    """The LiteLLM proxy with one worker, without a database: it stores nothing."""

    name = "litellm"
    model = MODEL
    key = LITELLM_KEY
    program = ROOT / ".venv-litellm" / "bin" / "litellm"

    def launch(self, model_port: int) -> None:
        if not self.program.exists():
            raise RuntimeError("LiteLLM is not installed: make .venv-litellm/.ready")
        config = self.home / "config.yaml"
        config.write_text(LITELLM_CONFIG.format(model=MODEL, host=HOST, port=model_port, key=LITELLM_KEY))
        env = clean_environment(LITELLM_LOG="ERROR", LITELLM_LOCAL_MODEL_COST_MAP="True", NO_PROXY="127.0.0.1")
        command = [str(self.program), "--config", str(config), "--host", HOST, "--port", str(self.port)]
        self.run([*command, "--num_workers", "1"], self.home, env)


KNOWN: dict[str, type[Target]] = {known.name: known for known in (Direct, Litellm, Serve, Uvicorn, Postgresql)}
