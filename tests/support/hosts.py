"""Processes with homes of their own on one database, as on several hosts, and the files of their owner."""

from itertools import count
from pathlib import Path
from typing import Any

from tests.support.migrated_database import Database
from tests.support.server import Server, script, server_beside
from tests.support.stored_rows import stored_rows, tool_calls

LEASES = {"HERMES_LEASE_SECS": "2", "HERMES_SWEEP_SECS": "0.1"}
WRITE = {"call": "write_file", "arguments": {"path": "note.txt", "content": "kept"}}
READ = {"call": "read_file", "arguments": {"path": "note.txt"}}
_NUMBERS = count(1)


class Hosts:
    def __init__(self, database: Database, folder: Path) -> None:
        self._database = database
        self._folder = folder
        self._started: list[Server] = []

    def start(self, **env: str) -> Server:
        home = self._folder / f"host{len(self._started)}"
        given = {**LEASES, **env}
        if not self._started:
            server = self._database.server(home, Server, **given)
        else:
            first = self._started[0]
            server = server_beside(first, home, Server, **given)
            for name in ("api_key", "secret_key"):
                (home / name).write_text((first.home / name).read_text())
        self._started.append(server)
        return server.start()

    def stop(self) -> None:
        for server in self._started:
            server.kill()


def run(server: Server, *steps: dict[str, Any], background: bool = False) -> str:
    asked = script(*steps)
    made = server.openai().responses.create(model="hermes-agent", input=asked, background=background)
    return made.id


def outputs(server: Server, response_id: str) -> list[tuple[str, str]]:
    return [(status, output) for _, status, output in tool_calls(server, response_id)]


def runs_on(server: Server, other: Server) -> bool:
    """Does the other host run a turn that this one has admitted?"""
    mark = f"turn {next(_NUMBERS)}"
    run(server, {"say": mark})
    return bool(other.model_calls(mark))


def owner_folder(server: Server) -> str:
    [(owner_id,)] = stored_rows(server, "workspacehome", "owner_id")
    return str(owner_id)
