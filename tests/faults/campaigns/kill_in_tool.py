"""kill -9 while tools run: unsafe ones are not run again, safe ones are, and the model gets to know which."""

import time
from collections.abc import Sequence
from typing import Any, Self

from tests.faults.campaigns.base import Campaign
from tests.support.checker import traces
from tests.support.scripted_requests import call
from tests.support.server import eventually, script, text

CALLS = 6
SHORT_SECS = 0.3
INTERRUPTED = "Interrupted"


class KillInTool(Campaign):
    name = "kill in mid-tool"
    counts = "kill -9 while tools run"
    suite = 10
    night = 300
    env = {"HERMES_MAX_ATTEMPTS": "100"}

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._held: dict[str, str] = {}  # what was running for certain, by the label of its call

    def round(self, wanted: int) -> int:
        gate = f"round-{self.faults}"
        held = [self._ask(gate) for _ in range(CALLS)]
        short = [self._ask(None) for _ in range(self.dice.randrange(CALLS))]
        eventually(lambda: {*held, *short} <= set(traces(self.server)), 30, "the start of every tool")
        time.sleep(self.dice.uniform(0, SHORT_SECS))  # short ones end about now: before the kill, or not
        self.server.kill()
        self.join_clients()
        self.server.open_gate(gate)
        self.server.start()
        return 1

    def _ask(self, gate: str | None) -> str:
        tool, word = self.dice.choice((("effect", "unsafe"), ("safe_effect", "safe"), ("_hidden", "hidden")))
        label = f"{word} {self.next_name()}"
        waits: dict[str, Any] = {"secs": self.dice.uniform(0, SHORT_SECS)} if gate is None else {"gate": gate}
        body: dict[str, Any] = {"input": script({"say": "first "}, call(tool, text=label, **waits))}
        if word != "hidden" and self.dice.random() < 0.3:
            body["tools"] = [{"type": "mcp", "server_label": "hermes"}]
        client = self.read(body) if self.dice.random() < 0.5 else self.post(body)
        if gate is not None:
            self._held[label] = client.asked = body["input"]
        return label

    def check(self) -> None:
        left = traces(self.server)
        reply = {seen.asked: text(self.server.body(seen.response_id)) for seen in self.history.seen if seen.response_id}
        for label, asked in self._held.items():
            is_safe = label.startswith("safe")
            times = left.count(label)
            assert times > 1 if is_safe else times == 1, (label, times)  # the second run of a safe one may be cut, too
            if asked in reply:
                expected = f"first The result is {label if is_safe else INTERRUPTED}"
                assert reply[asked].startswith(expected), (label, reply[asked])

    @classmethod
    def remark(cls, legs: Sequence[Self]) -> str:
        labels = [label for leg in legs for label in leg._held]
        safe = sum(label.startswith("safe") for label in labels)
        return f"{len(labels)} calls interrupted, {safe} of them safe and run again"
