"""What the programs of the clients share: the cases from the runner, and a file of what each saw.

A program runs in the environment of its client, which has nothing of the server's.
"""

import asyncio
import importlib.metadata
import json
import sys
import traceback
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MODEL = "hermes-agent"
Texts = list[str]


@dataclass(frozen=True)
class Case:
    base_url: str
    key: str
    api: str  # responses or chat
    is_streamed: bool
    is_chained: bool  # by previous_response_id; otherwise the history is sent again
    questions: list[str]


def drive(package: str, talk: Callable[[Case], Texts]) -> None:
    """``talk`` asks the questions one after another, and returns the answers."""
    base_url, key, cases, results = sys.argv[1:]
    report: dict[str, Any] = {"version": importlib.metadata.version(package), "seen": []}
    for fields in json.loads(Path(cases).read_text()):
        case = Case(base_url, key, **fields)
        try:
            report["seen"].append({"texts": talk(case)})
        except Exception as error:
            traceback.print_exc()
            report["seen"].append({"error": f"{type(error).__name__}: {error}"})
    Path(results).write_text(json.dumps(report))  # frameworks print what they like


def drive_async(package: str, talk: Callable[[Case], Coroutine[Any, Any, Texts]]) -> None:
    drive(package, lambda case: asyncio.run(talk(case)))
