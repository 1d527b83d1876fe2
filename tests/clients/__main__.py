"""Drives clients over turns with a tool of the server, and over a compaction: ``make test-clients``.

Most of them are too large for the suite. The environment that is named holds what they need.
"""

import json
import sys
import tempfile
from pathlib import Path

from tests.clients import open_webui_chats
from tests.clients.programs import PROGRAMS, Program
from tests.clients.scenarios import SCENARIOS, Scenario
from tests.support.server import Server
from tests.support.stored_rows import stored_rows


def main(environment: Path, only: str) -> int:
    failures = 0
    if only.lower() in open_webui_chats.NAME.lower():
        failures += open_webui_chats.drive(environment.with_name(".venv-openwebui"))
    for scenario in SCENARIOS:
        with tempfile.TemporaryDirectory(prefix="hermes-clients-") as folder:
            server = Server(Path(folder), **scenario.env)
            server.manage("migrate", "--verbosity", "0")
            server.start()
            try:
                for program in scenario.programs(PROGRAMS):
                    if only.lower() in program.name.lower():
                        failures += _drive(server, scenario, program, environment)
            finally:
                server.kill()
    return failures


def _drive(server: Server, scenario: Scenario, program: Program, environment: Path) -> int:
    cases = [scenario.case(program, form) for form in program.forms]
    chained = _chained(server)
    report = program.run(environment, server, [case.sent() for case in cases])
    failures = 0
    for case, seen in zip(cases, report.seen, strict=True):
        problem = seen.get("error") or scenario.problem(server, case, seen["texts"])
        print(f"{program.name} {report.version}: {scenario.name}, {case.form.label}: {problem or 'works'}", flush=True)
        failures += bool(problem)
    expected = sum(case.continued_turns for case in cases)
    found = _chained(server) - chained
    if found != expected and not failures:
        print(f"{program.name}: {found} turns continue another by its id, not {expected}")
        failures += 1
    if failures:
        print(report.log[-4000:])
    return failures


def _chained(server: Server) -> int:
    """The turns that name the one before them."""
    requests = [json.loads(request) for (request,) in stored_rows(server, "response", "request")]
    return sum(bool(request.get("previous_response_id")) for request in requests)


if __name__ == "__main__":
    folder, *names = sys.argv[1:]
    sys.exit(main(Path(folder).resolve(), "".join(names)))
