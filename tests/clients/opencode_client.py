"""Turns with opencode, each a run of its program. The settings are those of docs/guide/opencode.md."""

import os
from pathlib import Path

from tests.clients.command_line import changed_settings, drive_program, run_program
from tests.clients.driving import Case, Texts

SETTINGS = "docs/guide/opencode.md"


def talk(case: Case, folder: Path) -> Texts:
    (folder / "opencode.json").write_text(changed_settings(SETTINGS, "json", case))
    env = os.environ | {"HOME": str(folder), "HERMES_KEY": case.key}
    texts = []
    # With a title of its own, a session asks no model for one.
    command = ["opencode", "run", "--title", "a session"]
    for question in case.questions:
        texts.append(run_program(command, question, folder, env))
        command = ["opencode", "run", "--continue"]
    return texts


def version() -> str:
    return run_program(["opencode", "--version"], "", Path.cwd(), os.environ).strip()


drive_program(version, talk)
