"""The kill campaign: kill -9 at random moments with streams, tools, approvals and chains running, then the checker.

``make faults ROUNDS=100`` runs it longer than the suite does, and prints what it did.
"""

import argparse
import random
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx

from tests.checker import History, Seen, check_all, listed
from tests.harness import TERMINAL, Server, script
from tests.test_tool_runs import call

CLIENTS = 6
MAX_LIFE_SECS = 1.5
PROGRESS_ROUNDS = 10


class Campaign:
    """One server, killed again and again; the seed decides what is asked and when it dies."""

    def __init__(self, server: Server, seed: int) -> None:
        self.server = server
        self.dice = random.Random(seed)
        self.history = History()
        self.kills = 0
        self._asked = 0

    def round(self) -> None:
        clients = [self._client() for _ in range(CLIENTS)]
        for thread in clients:
            thread.start()
        self._consent()
        time.sleep(self.dice.uniform(0, MAX_LIFE_SECS))  # the moment of death is the variable under test
        self.server.kill()
        self.kills += 1
        for thread in clients:
            thread.join(30)
            assert not thread.is_alive(), "a client still waits for a server that is dead"
        self.server.start()

    def check(self) -> int:
        self._consent()
        return check_all(self.server, self.history)

    # -- clients ------------------------------------------------------------------------
    def _client(self) -> threading.Thread:
        self._asked += 1
        name = f"{self._asked}"
        body: dict[str, Any] = {"input": self.dice.choice(_SCRIPTS)(name, self.dice)}
        known = sorted(self.history.response_ids())
        if known and self.dice.random() < 0.25:
            body["previous_response_id"] = self.dice.choice(known)
        client = self.history.client()
        if self.dice.random() < 0.5:
            return threading.Thread(target=client.read, args=(self.server, body), daemon=True)
        return threading.Thread(target=self._post, args=(client, {**body, "background": True}), daemon=True)

    def _post(self, client: Seen, body: dict[str, Any]) -> None:
        try:
            with self.server.http() as http:
                answer = http.post("/v1/responses", json=body)
            if answer.status_code == 200:
                client.response_id = answer.json()["id"]
        except httpx.TransportError as error:
            client.cut = error

    def _consent(self) -> None:
        for body in list(listed(self.server)):
            if body["status"] not in TERMINAL:
                with self.server.http() as http:
                    http.post(f"/v1/responses/{body['id']}/approval", json={"choice": "once", "all": True})


def _words(name: str, dice: random.Random) -> str:
    return f"write {dice.randrange(20, 300)} words at {dice.choice((50, 500))} words per second"


def _tool(tool: str, label: str) -> Callable[[str, random.Random], str]:
    def asked(name: str, dice: random.Random) -> str:
        step = call(tool, text=f"{label} {name}", secs=round(dice.uniform(0, 0.5), 2))
        return script({"say": "first "}, step)

    return asked


# What a tool leaves in effects.txt tells whether it may be there twice.
_SCRIPTS = (_words, _tool("effect", "unsafe"), _tool("safe_effect", "safe"), _tool("guarded", "guarded"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that no server is left behind
    with tempfile.TemporaryDirectory(prefix="hermes-faults-") as home:
        server = Server(Path(home))
        server.manage("migrate", "--verbosity", "0")
        campaign = Campaign(server.start(), options.seed)
        try:
            for _ in range(options.rounds):
                campaign.round()
                if campaign.kills % PROGRESS_ROUNDS == 0:
                    print(f"{campaign.kills} kills", flush=True)
            checked = campaign.check()
        finally:
            server.kill()
    bound = 100 * 3 / max(campaign.kills, 1)
    print(f"seed {options.seed}: {campaign.kills} kills, {checked} responses checked, 0 lost, 0 stuck, 0 run twice")
    print(f"With 95 % confidence fewer than {bound:.2g} % of kills lose anything.")


if __name__ == "__main__":
    main()
