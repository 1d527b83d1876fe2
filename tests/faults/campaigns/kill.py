"""kill -9 at any moment, with streams, tools, approvals, chains and idempotency keys under way."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from tests.faults.campaigns.base import Campaign
from tests.support.checker import (
    DONE,
    STUCK_SECS,
    Seen,
    open_responses,
)
from tests.support.scripted_requests import call
from tests.support.server import eventually, script

CLIENTS = 8
MAX_LIFE_SECS = 0.8

Asked = tuple[dict[str, Any], str | None]


@dataclass(frozen=True)
class Tempo:
    """How long turns take."""

    paces: tuple[int, int] = (100, 500)  # words per second
    tool_secs: float = 0.5  # at most


class Kill(Campaign):
    name = "kill"
    counts = "kill -9"
    suite = 10
    night = 500
    tempo: ClassVar[Tempo] = Tempo()
    env = {"HERMES_MAX_ATTEMPTS": "100"}  # nothing is given up, so that all of it must be completed

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._keyed: list[Asked] = []
        self._last: list[Asked] = []

    def round(self, wanted: int) -> int:
        self.ask_all()
        self._consent()
        time.sleep(self.dice.uniform(0, MAX_LIFE_SECS))  # the moment of death is the variable under test
        self.server.kill()
        self.join_clients()
        self.server.start()
        return 1

    def ask_all(self) -> list[Seen]:
        """New requests, and those with a key of the round before."""
        repeated = [asked for asked in self._last if asked[1] is not None]
        self._last = [self._new_request() for _ in range(CLIENTS)]
        return [self._ask(body, key) for body, key in [*self._last, *repeated]]

    def settle(self) -> None:
        """Each client that sent a key asks once more, and each call that waits for consent gets it."""
        eventually(lambda: not self._consent(), STUCK_SECS, "the end of every response")
        repeated = [self._ask(body, key) for body, key in self._keyed]
        self.await_clients()
        assert all(client.response_id and client.cut is None for client in repeated)
        assert all(client.frames[-1] == DONE for client in repeated if client.frames)

    def await_clients(self) -> None:
        self.join_clients()

    # -- clients ------------------------------------------------------------------------
    def _new_request(self) -> Asked:
        name = self.next_name()
        body: dict[str, Any] = {"input": self.dice.choice(_SCRIPTS)(name, self.dice, self.tempo)}
        known = sorted(self.history.response_ids())
        if known and self.dice.random() < 0.25:
            body["previous_response_id"] = self.dice.choice(known)
        if self.dice.random() < 0.4:
            body["background"] = True
        key = f"key-{name}" if self.dice.random() < 0.6 else None
        if key is not None:
            self._keyed.append((body, key))
        return body, key

    def _ask(self, body: dict[str, Any], key: str | None) -> Seen:
        return self.post(body, key) if "background" in body else self.read(body, key)

    def _consent(self) -> int:
        """Says how many responses have not ended."""
        waiting = open_responses(self.server)
        with self.server.http() as http:
            for response_id in waiting:
                http.post(f"/v1/responses/{response_id}/approval", json={"choice": "once", "all": True})
        return len(waiting)


def _words(name: str, dice: random.Random, tempo: Tempo) -> str:
    return f"For number {name}, write {dice.randrange(20, 150)} words at {dice.choice(tempo.paces)} words per second"


def _tool(tool: str, label: str) -> Callable[[str, random.Random, Tempo], str]:
    def asked(name: str, dice: random.Random, tempo: Tempo) -> str:
        step = call(tool, text=f"{label} {name}", secs=round(dice.uniform(0, tempo.tool_secs), 2))
        return script({"say": "first "}, step)

    return asked


# What a tool leaves in effects.txt shows whether it may be there twice.
_SCRIPTS = (_words, _tool("effect", "unsafe"), _tool("safe_effect", "safe"), _tool("guarded", "guarded"))
