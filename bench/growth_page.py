"""The growth part of docs/performance.md: a table and a picture for each curve."""

import json
from pathlib import Path
from typing import Any

from bench.charts import svg
from bench.growth import GROWTHS, Growth
from bench.page import replace_part
from bench.results import number
from bench.targets import ROOT

STORED = ROOT / "bench" / "growth.json"
PICTURES = ROOT / "docs" / "pictures"
Measured = dict[str, dict[str, dict[str, float]]]  # by growth, size and figure


def read_stored(path: Path = STORED) -> Measured:
    if not path.exists():
        return {}
    measured: Measured = json.loads(path.read_text())["growth"]
    return measured


def write_growth(machine: dict[str, Any], measured: Measured) -> None:
    """What was measured replaces the same of an earlier run; the rest of that run stays."""
    known = read_stored() | measured
    STORED.write_text(json.dumps({"machine": machine, "growth": known}, indent=1) + "\n")
    parts = []
    for name, growth in GROWTHS.items():
        if name in known:
            picture = PICTURES / f"growth-{name}.svg"
            picture.write_text(picture_of(growth, known[name]))
            parts.append(section(name, growth, known[name]))
    replace_part("growth", "\n\n".join(parts))


def section(name: str, growth: Growth, sizes: dict[str, dict[str, float]]) -> str:
    heads = [growth.unit, *growth.figures.values(), "foreign CPU"]
    lines = [f"### {growth.title}", "", "| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for size, figures in sizes.items():
        cells = [f"{int(size):,}"]
        for figure in growth.figures:
            cells.append(number(figures[figure]) if figure in figures else "–")
        foreign = figures.get("foreign_share")
        cells.append("–" if foreign is None else f"{foreign:.0%}")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", f"![{growth.title}](pictures/growth-{name}.svg)"])


def picture_of(growth: Growth, sizes: dict[str, dict[str, float]]) -> str:
    curves = {}
    for figure in growth.drawn:
        points = [(float(size), figures[figure]) for size, figures in sizes.items() if figure in figures]
        curves[growth.figures[figure]] = points
    return svg(curves, growth.unit)
