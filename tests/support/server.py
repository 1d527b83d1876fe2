"""Real server processes, and what a client of them remembers."""

import http.client
import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import httpx
import openai

from responses_app.protocol.sse import decode_frame
from tests.support.databases import change, query
from tests.support.gates import EVERY_GATE, open_gate
from tests.support.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
START_SECS = 90  # on a machine with much else to do; one that dies is noticed at once
COMMAND_SECS = 100  # a migration on a machine with much else to do
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # reading the certificates for each client costs more than most tests
KNOWN_SECS = 0.1  # how long a server keeps what it has read: ``FRESH_SECS``, whose module needs settings
SHORTEST_PAUSE_SECS, LONGEST_PAUSE_SECS = 0.01, 0.05  # between two looks at a condition
TERMINAL = {"completed", "failed", "incomplete", "cancelled"}


def eventually(condition: Callable[[], Any], timeout_secs: float = 10, what: str = "the condition") -> Any:
    """Poll the outside world for something that will become true; fail when it does not."""
    deadline = time.monotonic() + timeout_secs
    pause_secs = SHORTEST_PAUSE_SECS
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(pause_secs)
        # Most looks are requests: without a longer pause, a test that waits takes half a processor.
        pause_secs = min(1.1 * pause_secs, LONGEST_PAUSE_SECS)
    raise AssertionError(f"{what} did not come true within {timeout_secs} s")


class Process(Protocol):
    @property
    def pid(self) -> int: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, sig: int, /) -> None: ...
    def kill(self) -> None: ...


def popen(args: list[str], env: dict[str, str], stdin: Path, stdout: Path, stderr: Path) -> Process:
    with stdin.open("rb") as given, stdout.open("ab") as reply, stderr.open("ab") as reported:
        return subprocess.Popen([sys.executable, *args], cwd=ROOT, env=env, stdin=given, stdout=reply, stderr=reported)


class Server:
    """``manage.py serve`` in a process of its own, on a home of its own."""

    command: tuple[str, ...] = ("manage.py", "serve")
    launch: Callable[[list[str], dict[str, str], Path, Path, Path], Process] = staticmethod(popen)

    def __init__(self, home: Path, **env: str) -> None:
        self.home = home
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.env = {
            **{
                name: value
                for name, value in os.environ.items()
                if not name.startswith(("HERMES_", "API_SERVER_", "DATABASE_", "REDIS_"))
            },
            "DJANGO_SETTINGS_MODULE": "tests.settings",
            "HERMES_HOME": str(home),
            "API_SERVER_PORT": str(self.port),
            "HERMES_SHUTDOWN_GRACE": "1",
            **env,
        }
        self.process: Process | None = None
        self.log_path = home / "server.log"
        self.client_secs = 30.0  # how long a client waits for the next byte
        self.witnessed: list[list[bytes]] = []  # what the readers of each stored stream received
        self._clients: dict[str, openai.OpenAI] = {}
        self._http: httpx.Client | None = None

    # -- life ---------------------------------------------------------------------------
    def manage(self, *args: str) -> str:
        done = self.managed(*args)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode().strip()

    def managed(self, *args: str, stdin: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
        command = ["manage.py", *args]
        with tempfile.TemporaryDirectory() as folder:
            given, reply, reported = (Path(folder) / name for name in ("stdin", "stdout", "stderr"))
            given.write_bytes(stdin)
            process = self.launch(command, self.env, given, reply, reported)
            try:
                code = process.wait(COMMAND_SECS)
            finally:
                process.kill()
            if self.is_running:
                time.sleep(KNOWN_SECS)  # until what the command has changed counts in the server
            return subprocess.CompletedProcess(command, code, reply.read_bytes(), reported.read_bytes())

    def start(self) -> "Server":
        command = [part.format(port=self.port) for part in self.command]
        launch = popen if command[0] == "-c" else self.launch
        self.process = launch(command, self.env, Path(os.devnull), self.log_path, self.log_path)
        eventually(self._answers, START_SECS, f"the server's first answer (see {self.log_path})")
        return self

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.log_path.read_text()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=2)
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def kill(self, number: int = signal.SIGKILL) -> None:
        for client in self._clients.values():
            client.close()
        self._clients.clear()
        if self._http is not None:
            self._http.close()
            self._http = None
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(30)
            self.process = None

    @property
    def log(self) -> str:
        return self.log_path.read_text()

    # -- clients ------------------------------------------------------------------------
    @property
    def key(self) -> str:
        return (self.home / "api_key").read_text().strip()

    def http(self, key: str | None = None) -> httpx.Client:
        headers = {"Authorization": f"Bearer {key or self.key}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=self.client_secs, verify=NO_TLS)

    def openai(self, key: str | None = None) -> openai.OpenAI:
        key = key or self.key
        if key not in self._clients:
            self._clients[key] = openai.OpenAI(
                base_url=f"{self.url}/v1",
                api_key=key,
                max_retries=0,
                timeout=30,
                http_client=openai.DefaultHttpxClient(verify=NO_TLS),
            )
        return self._clients[key]

    def body(self, response_id: str) -> dict[str, Any]:
        answer = self._owner().get(f"/v1/responses/{response_id}")
        assert answer.status_code == 200, answer.text
        body: dict[str, Any] = answer.json()
        return body

    def _owner(self) -> httpx.Client:
        """One kept connection for the many small looks of a test."""
        if self._http is None:
            self._http = self.http()
        return self._http

    def ended(self, response_id: str, timeout_secs: float = 20) -> dict[str, Any]:
        def look() -> dict[str, Any] | None:
            body = self.body(response_id)
            return body if body["status"] in TERMINAL else None

        found: dict[str, Any] = eventually(look, timeout_secs, f"the end of {response_id}")
        return found

    def replay(self, response_id: str, after: int | None = None) -> list[bytes]:
        params = {"stream": "true"} | ({} if after is None else {"starting_after": str(after)})
        with self._owner().stream("GET", f"/v1/responses/{response_id}", params=params) as answer:
            assert answer.status_code == 200, answer.read()
            return list(frames(answer))

    # -- the double and the database ----------------------------------------------------
    def open_gate(self, name: str = EVERY_GATE) -> None:
        open_gate(self.home, name)

    def model_calls(self, text: str) -> list[dict[str, Any]]:
        path = self.home / "model_calls.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return [line for line in lines if any(text in asked for asked in line["texts"])]

    def query(self, sql: str, *args: Any) -> list[tuple[Any, ...]]:
        return query(self.home, self.env.get("DATABASE_URL"), sql, args)

    def change(self, sql: str, *args: Any) -> int:
        return change(self.home, self.env.get("DATABASE_URL"), sql, args)


def server_beside(server: Server, home: Path, kind: type[Server] = Server, /, **env: str) -> Server:
    """Another process on the same database, with a home of its own."""
    home.mkdir()
    for name in ("api_key", "secret_key"):  # processes with other secrets are refused
        shutil.copy(server.home / name, home / name)
    own = f"sqlite:///{server.home / 'hermes.sqlite3'}"
    return kind(home, **{"DATABASE_URL": server.env.get("DATABASE_URL", own), **env})


def script(*steps: dict[str, Any]) -> str:
    return json.dumps({"script": list(steps)})


def frames(answer: httpx.Response) -> Iterator[bytes]:
    """Whole SSE frames as they arrive, ``[DONE]`` and comments included."""
    buffer = b""
    for chunk in answer.iter_raw():
        buffer += chunk
        while b"\n\n" in buffer:
            frame, buffer = buffer.split(b"\n\n", 1)
            yield frame + b"\n\n"


def events(received: list[bytes]) -> list[Any]:
    """Plain JSON, as a client has it."""
    return [decode_frame(frame) for frame in received if frame.startswith(b"event: ")]


def text(body: Mapping[str, Any]) -> str:
    parts = [part for item in body["output"] if item["type"] == "message" for part in item["content"]]
    return "".join(part.get("text", "") for part in parts)


@contextmanager
def streaming(server: Server, key: str | None = None, **body: Any) -> Iterator[tuple[httpx.Response, Iterator[bytes]]]:
    with server.http(key) as client, client.stream("POST", "/v1/responses", json={"stream": True, **body}) as answer:
        assert answer.status_code == 200, answer.read()
        received = frames(answer)
        yield answer, received if body.get("store") is False else _witnessed(server, received)


def _witnessed(server: Server, received: Iterator[bytes]) -> Iterator[bytes]:
    seen: list[bytes] = []
    server.witnessed.append(seen)
    for frame in received:
        seen.append(frame)
        yield frame


def created_id(first_frame: bytes) -> str:
    event = decode_frame(first_frame)
    assert event["type"] == "response.created"
    assert event["sequence_number"] == 0
    response_id: str = event["response"]["id"]
    return response_id


def copy_home(template: Path, home: Path) -> Path:
    shutil.copytree(template, home)
    return home
