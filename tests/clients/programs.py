"""The program of each client, and the forms of a turn that the client has."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.server import ROOT, Server

HERE = Path(__file__).parent
RUN_SECS = 300
QUIET = {
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "OTEL_SDK_DISABLED": "true",
    "HAYSTACK_TELEMETRY_ENABLED": "false",
    "PROMPTFOO_DISABLE_TELEMETRY": "1",
    "PROMPTFOO_DISABLE_UPDATE": "1",
    "PROMPTFOO_CACHE_ENABLED": "false",
}


@dataclass(frozen=True)
class Form:
    api: str
    is_streamed: bool
    is_chained: bool

    @property
    def label(self) -> str:
        stream = "streamed" if self.is_streamed else "whole"
        history = "previous_response_id" if self.is_chained else "history sent again"
        return f"{self.api}, {stream}, {history}"


CHAT = (Form("chat", False, False), Form("chat", True, False))
RESPONSES = (
    Form("responses", False, False),
    Form("responses", True, False),
    Form("responses", False, True),
    Form("responses", True, True),
)


@dataclass(frozen=True)
class Report:
    version: str
    seen: list[dict[str, Any]]
    log: str


@dataclass(frozen=True)
class Program:
    name: str
    module: str
    home: str  # whose Python or Node.js runs it: suite, clients or node
    forms: tuple[Form, ...] = RESPONSES + CHAT
    has_own_tools: bool = False  # so many that they fill a small context window

    def run(self, environment: Path, server: Server, cases: list[dict[str, Any]]) -> Report:
        given = server.home / "cases.json"
        given.write_text(json.dumps(cases))
        results = server.home / "results.json"
        results.unlink(missing_ok=True)
        done = subprocess.run(
            [*self._command(environment), f"{server.url}/v1", server.key, str(given), str(results)],
            cwd=ROOT,
            env=os.environ | QUIET | {"HOME": str(server.home), "PATH": _path(environment)},
            capture_output=True,
            text=True,
            timeout=RUN_SECS,
        )
        if not results.exists():
            raise RuntimeError(f"{self.name} ended with {done.returncode}: {done.stdout}{done.stderr}")
        found = json.loads(results.read_text())
        return Report(found["version"], found["seen"], done.stderr)

    def _command(self, environment: Path) -> list[str]:
        if self.home == "suite":
            return [sys.executable, "-m", f"tests.clients.{self.module}"]
        if self.home == "clients":
            return [str(environment / "bin/python"), "-m", f"tests.clients.{self.module}"]
        # Node.js looks for packages in the folder of the program.
        for source in (HERE / "node").glob("*.mjs"):
            shutil.copy(source, environment / "node")
        return ["node", str(environment / "node" / f"{self.module}.mjs")]


def _path(environment: Path) -> str:
    aider = environment.with_name(".venv-aider")
    folders = [environment / "bin", environment / "node/node_modules/.bin", aider / "bin"]
    return os.pathsep.join([*map(str, folders), os.environ["PATH"]])


PROGRAMS = (
    Program("AI SDK", "ai_sdk", "node"),
    Program("Pydantic AI", "pydantic_ai_client", "suite"),
    Program("LangChain", "langchain_client", "suite"),
    Program("OpenAI Agents SDK", "openai_agents_client", "suite"),
    Program("Haystack", "haystack_client", "clients"),
    Program("CrewAI", "crewai_client", "clients"),
    Program("promptfoo", "promptfoo", "node"),
    Program("Codex", "codex_client", "suite", (Form("responses", True, False),), has_own_tools=True),
    Program("aider", "aider_client", "suite", (Form("chat", True, False),), has_own_tools=True),
    Program("opencode", "opencode_client", "suite", (Form("chat", True, False),), has_own_tools=True),
)
