"""The figures of all rounds."""

from collections.abc import Mapping
from statistics import median
from typing import Any

Figures = Mapping[str, float]
# What a line on the screen shows of each scenario; the JSON has everything.
HEADLINES = {
    "first_text": ("first_p50_ms", "first_p99_ms", "cpu_ms_per_request"),
    "short": ("rate", "cpu_ms_per_request", "total_p50_ms"),
    "streams_50": ("delivered", "added_p50_ms", "added_p99_ms", "cpu_us_per_token"),
    "streams_200": ("delivered", "added_p50_ms", "added_p99_ms", "cpu_us_per_token"),
    "flood_50": ("rate", "cpu_us_per_token", "delivered"),
    "flood_200": ("rate", "cpu_us_per_token", "delivered"),
    "memory": ("base_mb", "resident_mb", "kb_per_stream"),
    "idle": ("cpu_share",),
    "replay": ("merged_ms", "unmerged_ms", "segments"),
    "fanout_500": ("added_p50_ms", "added_p99_ms", "slower", "cpu_us_per_token"),
    "waiting": ("cpu_share", "kb_per_reader", "opened_per_sec"),
    "across": ("added_p50_ms", "added_p99_ms", "delivered", "cpu_us_per_event"),
    "cancel": ("cancel_p50_ms", "cancel_max_ms"),
    "spread_flood": ("rate", "delivered"),
    "readers": ("added_p50_ms", "added_p99_ms", "cpu_us_per_reader_event"),
    "storage": ("bytes_per_turn", "bytes_per_token", "merge_cpu_ms_per_turn"),
}


class Results:
    def __init__(self, machine: Mapping[str, str | float]) -> None:
        self.machine = dict(machine)
        self._rounds: dict[tuple[str, str, str], list[Figures]] = {}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Results":
        """The medians as one round."""
        found = cls(stored["machine"])
        for row in stored["rows"]:
            figures = {name: figure["median"] for name, figure in row["figures"].items()}
            found.add(row["scenario"], row["api"], row["target"], figures)
        return found

    def add(self, scenario: str, api: str, target: str, figures: Figures) -> None:
        self._rounds.setdefault((scenario, api, target), []).append(figures)

    def keys(self) -> list[tuple[str, str, str]]:
        return list(self._rounds)

    def middle(self, scenario: str, api: str, target: str, figure: str) -> float | None:
        """The median of the rounds."""
        found = self.all(scenario, api, target, figure)
        return median(found) if found else None

    def all(self, scenario: str, api: str, target: str, figure: str) -> list[float]:
        rounds = self._rounds.get((scenario, api, target), [])
        return [figures[figure] for figures in rounds if figure in figures]

    @staticmethod
    def line(scenario: str, figures: Figures) -> str:
        parts = [f"{name} {number(figures[name])}" for name in HEADLINES[scenario] if name in figures]
        if "foreign_share" in figures:
            parts.append(f"foreign {figures['foreign_share']:.0%}")
        return ", ".join(parts)

    def text(self) -> str:
        lines = []
        for scenario, api, target in self.keys():
            names = (*HEADLINES[scenario], "foreign_share")
            middles = {name: self.middle(scenario, api, target, name) for name in names}
            known = {name: value for name, value in middles.items() if value is not None}
            lines.append(f"{scenario:12} {api:10} {target:11} {self.line(scenario, known)}")
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """The median of each figure, and its values in the rounds."""
        rows = []
        for scenario, api, target in self.keys():
            rounds = self._rounds[scenario, api, target]
            figures = {}
            for name in rounds[0]:
                values = self.all(scenario, api, target, name)
                figures[name] = {"median": round(median(values), 4), "rounds": [round(value, 4) for value in values]}
            rows.append({"scenario": scenario, "api": api, "target": target, "figures": figures})
        return {"machine": self.machine, "rows": rows}


def number(value: float) -> str:
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"
