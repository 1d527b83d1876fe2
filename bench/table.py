"""The table of docs/performance.md: one row per figure and API, with its goals."""

from collections.abc import Callable
from dataclasses import dataclass

from bench.results import Results, number

OURS = "serve"
COLUMNS = {
    "direct": "direct",
    "litellm": "LiteLLM",
    OURS: "**ours**",
    "uvicorn": "under uvicorn",
    "postgresql": "on PostgreSQL",
}
API_NAMES = {"chat": "chat", "responses": "Responses"}


@dataclass(frozen=True)
class Goal:
    """A bound of one figure: itself, its excess over ``direct``, or its ratio to LiteLLM's."""

    figure: str
    at_most: float | None = None
    at_least: float | None = None
    beside: str = ""

    def holds(self, results: Results, scenario: str, api: str) -> bool | None:
        """None where something was not measured."""
        value = results.middle(scenario, api, OURS, self.figure)
        if value is None:
            return None
        if self.beside:
            other = results.middle(scenario, api, self.beside, self.figure)
            if other is None:
                return None
            value = value - other if self.beside == "direct" else value / other
        if self.at_most is not None:
            return value <= self.at_most
        assert self.at_least is not None
        return value >= self.at_least


Format = Callable[[float], str]


def ms(value: float) -> str:
    return f"{number(value)} ms"


def us(value: float) -> str:
    return f"{number(value)} µs"


def percent(value: float) -> str:
    return f"{number(value * 100)} %"


def per_sec(value: float) -> str:
    return f"{number(value)}/s"


def mb(value: float) -> str:
    return f"{number(value)} MB"


def kb(value: float) -> str:
    return f"{number(value)} KB"


@dataclass(frozen=True)
class Row:
    label: str
    scenario: str
    figures: tuple[tuple[str, Format], ...]
    must: tuple[str, tuple[Goal, ...]] = ("", ())
    stretch: tuple[str, tuple[Goal, ...]] = ("", ())


ADDED = (("added_p50_ms", ms), ("added_p99_ms", ms))
ROWS = (
    Row(
        "time to first text, 1 client",
        "first_text",
        (("first_p50_ms", ms),),
        ("≤ 10 ms over direct", (Goal("first_p50_ms", at_most=10, beside="direct"),)),
        ("4 ms", (Goal("first_p50_ms", at_most=4, beside="direct"),)),
    ),
    Row(
        "server CPU per short request, not streamed",
        "short",
        (("cpu_ms_per_request", ms),),
        ("≤ 9 ms", (Goal("cpu_ms_per_request", at_most=9),)),
        ("5 ms", (Goal("cpu_ms_per_request", at_most=5),)),
    ),
    Row(
        "such requests, 10 clients",
        "short",
        (("rate", per_sec),),
        ("≥ 2 × LiteLLM", (Goal("rate", at_least=2, beside="litellm"),)),
        ("4 ×", (Goal("rate", at_least=4, beside="litellm"),)),
    ),
    Row(
        "50 streams × 50 tokens/s: p50 / p99 added",
        "streams_50",
        ADDED,
        ("≤ 10 / 40 ms", (Goal("added_p50_ms", at_most=10), Goal("added_p99_ms", at_most=40))),
        ("4 / 15 ms", (Goal("added_p50_ms", at_most=4), Goal("added_p99_ms", at_most=15))),
    ),
    Row("… delivered in time", "streams_50", (("delivered", percent),)),
    Row(
        "… server CPU per token",
        "streams_50",
        (("cpu_us_per_token", us),),
        ("≤ 200 µs", (Goal("cpu_us_per_token", at_most=200),)),
        ("100 µs", (Goal("cpu_us_per_token", at_most=100),)),
    ),
    Row(
        "200 streams × 50 tokens/s: delivered in time, p99 added",
        "streams_200",
        (("delivered", percent), ("added_p99_ms", ms)),
        ("≥ 90 %, 300 ms", (Goal("delivered", at_least=0.9), Goal("added_p99_ms", at_most=300))),
        ("98 %, 100 ms", (Goal("delivered", at_least=0.98), Goal("added_p99_ms", at_most=100))),
    ),
    Row(
        "flood of 50 × 80 tokens",
        "flood_50",
        (("rate", per_sec),),
        ("≥ 6 × LiteLLM", (Goal("rate", at_least=6, beside="litellm"),)),
        ("15 ×", (Goal("rate", at_least=15, beside="litellm"),)),
    ),
    Row(
        "flood of 200 × 30 tokens",
        "flood_200",
        (("rate", per_sec),),
        ("≥ 2,500/s", (Goal("rate", at_least=2_500),)),
        ("5,000/s", (Goal("rate", at_least=5_000),)),
    ),
    Row(
        "memory: base, per live stream",
        "memory",
        (("base_mb", mb), ("kb_per_stream", kb)),
        ("≤ 120 MB, 120 KB", (Goal("base_mb", at_most=120), Goal("kb_per_stream", at_most=120))),
        ("90 MB, 60 KB", (Goal("base_mb", at_most=90), Goal("kb_per_stream", at_most=60))),
    ),
    Row(
        "an idle server, CPU of a core",
        "idle",
        (("cpu_share", percent),),
        ("≤ 0.4 %", (Goal("cpu_share", at_most=0.004),)),
        ("0.1 %", (Goal("cpu_share", at_most=0.001),)),
    ),
    Row(
        "replay of 10,000 events: merged, unmerged log",
        "replay",
        (("merged_ms", ms), ("unmerged_ms", ms)),
        ("≤ 60 ms", (Goal("merged_ms", at_most=60), Goal("unmerged_ms", at_most=60))),
        ("20 ms", (Goal("merged_ms", at_most=20), Goal("unmerged_ms", at_most=20))),
    ),
    Row(
        "500 readers of one live stream: p99 added, stream slower by",
        "fanout_500",
        (("added_p99_ms", ms), ("slower", percent)),
        ("≤ 150 ms", (Goal("added_p99_ms", at_most=150),)),
        ("60 ms", (Goal("added_p99_ms", at_most=60),)),
    ),
    Row(
        "2,000 waiting readers: CPU of a core, memory of each",
        "waiting",
        (("cpu_share", percent), ("kb_per_reader", kb)),
        ("≤ 20 %, 60 KB", (Goal("cpu_share", at_most=0.2), Goal("kb_per_reader", at_most=60))),
        ("10,000 at 10 KB", ()),
    ),
    Row(
        "bytes stored: per short turn, per token of a long answer",
        "storage",
        (("bytes_per_turn", number), ("bytes_per_token", number)),
        ("≤ 6,000, 30", (Goal("bytes_per_turn", at_most=6_000), Goal("bytes_per_token", at_most=30))),
        ("3,000, 15", (Goal("bytes_per_turn", at_most=3_000), Goal("bytes_per_token", at_most=15))),
    ),
)


def markdown(results: Results) -> str:
    """The table. A goal that is met has a check mark, one that is missed a cross."""
    measured = results.keys()
    targets = [name for name in COLUMNS if any(target == name for _, _, target in measured)]
    targets += sorted({target for _, _, target in measured} - set(COLUMNS))
    heads = ["", *[COLUMNS.get(name, name) for name in targets], "must", "stretch", "foreign CPU"]
    lines = [_line(heads), "|" + "---|" * len(heads)]
    for row in ROWS:
        apis = [api for api in API_NAMES if any((row.scenario, api) == key[:2] for key in measured)]
        for api in apis:
            lines.append(_line(_cells(results, row, api, targets, is_alone=len(apis) == 1)))
    return "\n".join(lines)


def _cells(results: Results, row: Row, api: str, targets: list[str], *, is_alone: bool) -> list[str]:
    label = row.label if is_alone else f"{row.label} ({API_NAMES[api]})"
    cells = [label]
    foreign = 0.0
    for target in targets:
        values = [(results.middle(row.scenario, api, target, name), show) for name, show in row.figures]
        cells.append(" / ".join("–" if value is None else show(value) for value, show in values))
        foreign = max(foreign, results.middle(row.scenario, api, target, "foreign_share") or 0.0)
    for text, goals in (row.must, row.stretch):
        cells.append(text + _verdict([goal.holds(results, row.scenario, api) for goal in goals]))
    return [*cells, percent(round(foreign, 2))]


def _verdict(found: list[bool | None]) -> str:
    if not found or None in found:
        return ""
    return " ✓" if all(found) else " ✗"


def _line(cells: list[str]) -> str:
    cleaned = ["–" if set(cell) <= set("–/ ") and cell else cell for cell in cells]
    return "| " + " | ".join(cleaned) + " |"
