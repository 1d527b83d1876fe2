"""Drives client frameworks over two turns with a tool of the server: ``make test-clients``.

They are too large for the suite. ``HOME/venv`` and ``HOME/node_modules`` hold what they need.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.server import Server, script

HERE = Path(__file__).parent
RUN_SECS = 120
ASKED = script({"call": "effect", "arguments": {"text": "by the server"}})
NEXT = script({"say": "the second turn"})
QUIET = {"CREWAI_DISABLE_TELEMETRY": "true", "HAYSTACK_TELEMETRY_ENABLED": "false", "PROMPTFOO_DISABLE_TELEMETRY": "1"}


def main(home: Path) -> int:
    python = str(home / "venv" / "bin" / "python")
    commands = {
        "Haystack": [python, str(HERE / "haystack_client.py")],
        "CrewAI": [python, str(HERE / "crewai_client.py")],
        "promptfoo": ["node", str(HERE / "promptfoo_client.mjs")],
    }
    failed = 0
    with tempfile.TemporaryDirectory(prefix="hermes-clients-") as folder:
        server = Server(Path(folder))
        server.manage("migrate", "--verbosity", "0")
        server.start()
        try:
            for name, command in commands.items():
                problem = _problem(server, command, home)
                print(f"{name}: {problem or 'two turns work'}")
                failed += bool(problem)
        finally:
            server.kill()
    return failed


def _problem(server: Server, command: list[str], home: Path) -> str:
    done = subprocess.run(
        [*command, f"{server.url}/v1", server.key, ASKED, NEXT],
        cwd=home,
        env=os.environ | QUIET,
        capture_output=True,
        text=True,
        timeout=RUN_SECS,
    )
    if done.returncode != 0:
        return f"failed: {done.stderr.strip().splitlines()[-1:]}"
    seen = json.loads(done.stdout.strip().splitlines()[-1])
    if "by the server" not in str(seen["first"]):
        return f"the first turn is {seen['first']!r}"
    if seen["second"] != "the second turn":
        return f"the second turn is {seen['second']!r}"
    return ""


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
