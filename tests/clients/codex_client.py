"""Turns with Codex, each a run of its program. The settings are those of docs/guide/codex.md."""

import os
import re
from pathlib import Path

from tests.clients.command_line import changed_settings, drive_program, run_program
from tests.clients.driving import Case, Texts

SETTINGS = "docs/guide/codex.md"


def talk(case: Case, folder: Path) -> Texts:
    home = folder / "codex"
    home.mkdir()
    (home / "config.toml").write_text(changed_settings(SETTINGS, "toml", case) + "\n[analytics]\nenabled = false\n")
    env = os.environ | {"CODEX_HOME": str(home), "HERMES_KEY": case.key}
    texts = []
    command = ["codex", "exec"]
    for question in case.questions:
        answer = folder / "answer.txt"
        run_program(
            [*command, "--skip-git-repo-check", "--output-last-message", str(answer), "-"], question, folder, env
        )
        texts.append(answer.read_text())
        command = ["codex", "exec", "resume", "--last"]
    return texts


def version() -> str:
    printed = run_program(["codex", "--version"], "", Path.cwd(), os.environ)
    return re.sub(r"[^\d.]", "", printed)


drive_program(version, talk)
