"""What the clients share that are programs of their own, and run with the settings of their guide."""

import json
import re
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.clients.driving import Case, Texts

ROOT = Path(__file__).resolve().parents[2]
GUIDE_ADDRESS = "http://127.0.0.1:8642/v1"
TURN_SECS = 120


def drive_program(version: Callable[[], str], talk: Callable[[Case, Path], Texts]) -> None:
    """``talk`` gets a folder of its own for each case: a program keeps its sessions in files."""
    base_url, key, cases, results = sys.argv[1:]
    report: dict[str, Any] = {"version": version(), "seen": []}
    for fields in json.loads(Path(cases).read_text()):
        with tempfile.TemporaryDirectory(prefix="hermes-client-") as folder:
            try:
                report["seen"].append({"texts": talk(Case(base_url, key, **fields), Path(folder))})
            except (OSError, RuntimeError, subprocess.SubprocessError) as error:
                traceback.print_exc()
                report["seen"].append({"error": f"{type(error).__name__}: {error}"})
    Path(results).write_text(json.dumps(report))


def changed_settings(guide: str, language: str, case: Case) -> str:
    """The settings as the guide has them, for the address of this server."""
    [settings] = re.findall(rf"```{language}\n(.*?)```", (ROOT / guide).read_text(), re.DOTALL)
    assert GUIDE_ADDRESS in settings
    return str(settings).replace(GUIDE_ADDRESS, case.base_url)


def run_program(command: list[str], question: str, folder: Path, env: Mapping[str, str]) -> str:
    # opencode looks for its settings in PWD, which is not set by a change of the folder.
    done = subprocess.run(
        command,
        input=question,
        cwd=folder,
        env={**env, "PWD": str(folder)},
        capture_output=True,
        text=True,
        timeout=TURN_SECS,
    )
    if done.returncode:
        raise RuntimeError(f"{command[0]} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout
