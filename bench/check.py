"""Compares the CPU of a short run with the stored figures, and finds a loss beyond noise.

CPU times of two machines can't be compared. So each is divided by the CPU time of a fixed piece of work, done on the
same core in the same run.
"""

import json
import sqlite3
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.targets import ROOT

BASELINE = ROOT / "bench" / "baseline.json"
# What is compared: scenario, figure, and the length of a measurement in seconds.
CHECKED = (("short", "cpu_ms_per_request", 4.0), ("streams_50", "cpu_us_per_token", 4.0))
NOISE = 0.12  # two runs of the same tree on a busy machine differed by less
BUSY_SHARE = 0.2  # of the server's core; beyond it, a run is a hint at best
CALIBRATION_STEPS = 12_000


@dataclass(frozen=True)
class Comparison:
    name: str
    stored: float
    found: float

    @property
    def change(self) -> float:
        return self.found / self.stored - 1

    @property
    def is_loss(self) -> bool:
        return self.change > NOISE

    @property
    def text(self) -> str:
        verdict = "ok"
        if self.is_loss:
            verdict = f"LOSS (more than {NOISE:.0%})"
        elif self.change < -NOISE:
            verdict = "gain; store it with make bench-check STORE=1"
        return f"{self.name:40} stored {self.stored:8.3f}  now {self.found:8.3f}  {self.change:+6.1%}  {verdict}"


def compare(stored: Mapping[str, float], found: Mapping[str, float]) -> list[Comparison]:
    missing = sorted(stored.keys() - found.keys())
    if missing:
        raise SystemExit(f"Not measured: {', '.join(missing)}.")
    return [Comparison(name, stored[name], found[name]) for name in sorted(stored)]


def verdict(comparisons: list[Comparison]) -> int:
    """The exit code: 1 if one of them is a loss."""
    return int(any(comparison.is_loss for comparison in comparisons))


def calibration_secs() -> float:
    """CPU of a fixed piece of work of the kinds that the server does: JSON, text, objects, SQL."""
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE calibration (id INTEGER PRIMARY KEY, frame BLOB)")
    event = {"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "delta": "word "}
    start = time.process_time()
    frames: list[bytes] = []
    for number in range(CALIBRATION_STEPS):
        text = json.dumps({**event, "sequence_number": number})
        frames.append(f"event: {event['type']}\ndata: {text}\n\n".encode())
        if number % 10 == 0:
            connection.execute("INSERT INTO calibration (frame) VALUES (?)", (b"".join(frames),))
            frames.clear()
        json.loads(text)
    took = time.process_time() - start
    connection.close()
    return took


def read_baseline(path: Path = BASELINE) -> dict[str, float]:
    if not path.exists():
        raise SystemExit(f"{path} is missing: make bench-check STORE=1 writes it.")
    stored: dict[str, float] = json.loads(path.read_text())["ratios"]
    return stored
