"""Measures a real server from outside; ``make bench``. README.md tells how to read the table."""

import asyncio
import json
import os
import platform
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # a script sees its own folder only

from bench.cases import Figures, commit_floor, first_text, ratios, replays, streams  # noqa: E402
from bench.client import ask  # noqa: E402
from bench.server import wait_until_tidy  # noqa: E402
from tests.support.server import Server  # noqa: E402

RESULTS = ROOT / "bench" / "results.json"
MANY_STREAMS = 50
WARM_UP_REQUESTS = 5
GOALS = (("first_text", "p50_ms", 10.0), ("replay", "unmerged_first_secs", 1.0), ("replay", "merged_first_secs", 1.0))


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
    goals = {(case, name): limit for case, name, limit in GOALS}
    for case, values in figures.items():
        print(case.replace("_", " "))
        for name, value in values.items():
            limit = goals.get((case, name))
            verdict = "" if limit is None else f"  goal {limit:g}: {'met' if value <= limit else 'MISSED'}"
            shown = f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
            print(f"  {name:<28}{shown:>10}{verdict}")


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
    rounded = {case: {name: round(value, 4) for name, value in values.items()} for case, values in figures.items()}
    RESULTS.write_text(json.dumps({"machine": about, **rounded}, indent=2) + "\n")
    show(figures)


if __name__ == "__main__":
    main()
