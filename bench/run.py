"""Measures a real server from outside; ``make bench``. README.md explains the table."""

import asyncio
import json
import os
import platform
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # Python adds only the folder of a script

from bench.cases import Figures, commit_floor, first_text, ratios, replays, streams  # noqa: E402
from bench.client import ask  # noqa: E402
from bench.server import wait_until_tidy  # noqa: E402
from tests.support.server import Server  # noqa: E402

RESULTS = ROOT / "bench" / "results.json"
MANY_STREAMS = 50
WARM_UP_REQUESTS = 5
# By case and figure.
GOALS = {
    ("first_text", "p50_ms"): 10.0,
    ("replay", "unmerged_first_secs"): 1.0,
    ("replay", "merged_first_secs"): 1.0,
}


async def measure(server: Server) -> dict[str, Figures]:
    for _ in range(WARM_UP_REQUESTS):
        await ask(server, words=3, pace=100)
    figures = {"commit_floor": commit_floor(server.home)}
    figures["first_text"] = await first_text(server)
    wait_until_tidy(server)
    figures["one_stream"] = await streams(server, 1)
    wait_until_tidy(server)
    figures["many_streams"] = await streams(server, MANY_STREAMS)
    wait_until_tidy(server)
    figures["replay"] = await replays(server)
    figures["ratios"] = ratios(figures)
    return figures


def machine() -> dict[str, str | float]:
    return {
        "cpus": os.cpu_count() or 0,
        "load_before": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "kernel": platform.release(),
    }


def show(figures: dict[str, Figures]) -> None:
    for case, values in figures.items():
        print(case.replace("_", " "))
        for name, value in values.items():
            print(f"  {name:<28}{_number(value):>10}{_verdict(GOALS.get((case, name)), value)}")


def _number(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _verdict(goal: float | None, value: float) -> str:
    if goal is None:
        return ""
    if value <= goal:
        return f"  goal {goal:g}: met"
    return f"  goal {goal:g}: MISSED"


def main() -> None:
    about = machine()
    with tempfile.TemporaryDirectory(prefix="hermes-bench-") as home:
        server = Server(Path(home), DJANGO_SETTINGS_MODULE="bench.settings")
        server.manage("migrate", "--verbosity", "0")
        server.start()
        try:
            figures = asyncio.run(measure(server))
        finally:
            server.kill()
    results: dict[str, Mapping[str, str | float]] = {"machine": about}
    for case, values in figures.items():
        results[case] = {name: round(value, 4) for name, value in values.items()}
    RESULTS.write_text(json.dumps(results, indent=2) + "\n")
    show(figures)


if __name__ == "__main__":
    main()
