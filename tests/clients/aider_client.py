"""Turns with aider, each a run of its program. The settings are those of docs/guide/aider.md."""

import os
from pathlib import Path

from tests.clients.command_line import drive_program, run_program
from tests.clients.driving import MODEL, Case, Texts

QUIET = ("--no-git", "--yes-always", "--no-check-update", "--no-show-model-warnings", "--no-pretty", "--no-analytics")
# Other modes add the rules of their edit format to the question.
ARGUMENTS = ("--model", f"openai/{MODEL}", "--chat-mode", "ask", *QUIET)


def talk(case: Case, folder: Path) -> Texts:
    env = os.environ | {"HOME": str(folder), "OPENAI_API_BASE": case.base_url, "OPENAI_API_KEY": case.key}
    texts = []
    for question in case.questions:
        message = folder / "message.txt"
        message.write_text(question)
        command = ["aider", *ARGUMENTS, "--restore-chat-history", "--message-file", str(message)]
        texts.append(run_program(command, "", folder, env))
    return texts


def version() -> str:
    return run_program(["aider", "--version"], "", Path.cwd(), os.environ).split()[-1]


drive_program(version, talk)
