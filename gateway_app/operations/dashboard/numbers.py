"""Counts over a window of time: throughput, latency, errors, tokens and the use of tools.

The database counts, from indexes alone; what leaves it is a row per slot and class, however many responses there
were. Latencies are counted in classes, as a percentile of many values needs no more, and every database can do it.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.core.cache import cache
from django.db.models import Case, Count, F, Func, IntegerField, Q, QuerySet, Sum, Value, When

from gateway_app.operations.dashboard.windows import Window
from responses_app.models import Response, ToolEvent, ToolStatus
from responses_app.protocol.status import Status
from responses_app.services.keys import actor_names

# Upper bounds in milliseconds; each is at most twice the one before, and a percentile is read between two.
CLASSES_MS = (
    *(10, 20, 35, 50, 75, 100, 150, 200, 300, 400, 500, 750, 1000, 1500, 2000, 3000, 4000, 5000),
    *(7500, 10_000, 15_000, 20_000, 30_000, 45_000, 60_000, 90_000, 120_000, 180_000, 300_000),
    *(600_000, 1_200_000, 2_400_000, 3_600_000, 7_200_000, 86_400_000),
)
SHOWN_ROWS = 12


class Slot(Func):
    """The number of the slot a time lies in."""

    output_field = IntegerField()

    def __init__(self, column: str, slot_secs: int) -> None:
        super().__init__(F(column), slot_secs=slot_secs)

    def as_sqlite(self, compiler: Any, connection: Any, **extra: Any) -> Any:
        template = "CAST(strftime('%%%%s', %(expressions)s) AS INTEGER) / %(slot_secs)d"
        return self.as_sql(compiler, connection, template=template, **extra)

    def as_postgresql(self, compiler: Any, connection: Any, **extra: Any) -> Any:
        template = "FLOOR(EXTRACT(EPOCH FROM %(expressions)s))::bigint / %(slot_secs)d"
        return self.as_sql(compiler, connection, template=template, **extra)


@dataclass
class Point:
    """One slot of the plots."""

    at: int
    ended: int = 0
    failed: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    total_classes: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    first_classes: dict[int, int] = field(default_factory=lambda: defaultdict(int))

    @property
    def error_percent(self) -> float | None:
        return round(100 * self.failed / self.ended, 1) if self.ended else None


@dataclass
class Use:
    """What one model, key or operator used."""

    name: str
    responses: int = 0
    failed: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    tool_calls: int = 0

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True)
class ToolUse:
    name: str
    calls: int
    failed: int


@dataclass(frozen=True)
class Numbers:
    points: list[Point]
    by_model: list[Use]
    by_key: list[Use]
    tools: list[ToolUse]

    @property
    def whole(self) -> Point:
        """The window as if it were one slot."""
        whole = Point(0)
        for point in self.points:
            for name in ("ended", "failed", "input_tokens", "output_tokens"):
                setattr(whole, name, getattr(whole, name) + getattr(point, name))
            for mine, its in (
                (whole.total_classes, point.total_classes),
                (whole.first_classes, point.first_classes),
            ):
                for upper, count in its.items():
                    mine[upper] += count
        return whole


def numbers(window: Window) -> Numbers:
    """Counted at most once in a while, however many people look."""
    key = f"dashboard.numbers.{window.name}"
    found: Numbers | None = cache.get(key)
    if found is None:
        found = _count(window)
        cache.set(key, found, window.kept_secs)
    return found


def ended_in(window: Window) -> QuerySet[Response]:
    return Response.objects.filter(finished_at__isnull=False, finished_at__gte=window.start)


def percentile(classes: Mapping[int, int], share: float) -> int | None:
    """The value below which this share lies, read between the bounds of its class."""
    rank = share * sum(classes.values())
    if not rank:
        return None
    below = 0
    for upper in sorted(classes):
        if below + classes[upper] >= rank:
            lower = max((bound for bound in CLASSES_MS if bound < upper), default=0)
            return round(lower + (upper - lower) * (rank - below) / classes[upper])
        below += classes[upper]
    return max(classes)


def _count(window: Window) -> Numbers:
    points = {at // window.slot_secs: Point(at) for at in window.slots}
    _add_ends(points, window)
    _add_first_outputs(points, window)
    used = list(
        ended_in(window)
        .order_by()
        .values("model", "requested_by")
        .annotate(
            responses=Count("pk"),
            failures=Count("pk", filter=Q(status=Status.FAILED)),
            input=Sum("input_tokens"),
            output=Sum("output_tokens"),
            calls=Sum("tool_calls"),
        )
    )
    names = actor_names(row["requested_by"] for row in used)
    return Numbers(
        points=list(points.values()),
        by_model=_folded((row["model"], row) for row in used),
        by_key=_folded(
            (names.get(row["requested_by"], row["requested_by"] or "unknown"), row) for row in used
        ),
        tools=_tools(window),
    )


def _class_of(column: str) -> Case:
    bounds = [When(**{f"{column}__lte": upper}, then=Value(upper)) for upper in CLASSES_MS]
    return Case(*bounds, default=Value(CLASSES_MS[-1]), output_field=IntegerField())


def _add_ends(points: dict[int, Point], window: Window) -> None:
    rows = (
        ended_in(window)
        .order_by()
        .annotate(slot=Slot("finished_at", window.slot_secs), speed=_class_of("total_ms"))
        .values("slot", "status", "speed")
        .annotate(count=Count("pk"), input=Sum("input_tokens"), output=Sum("output_tokens"))
    )
    for row in rows:
        point = points.get(row["slot"])
        if point is None:  # ended while this was counted
            continue
        point.ended += row["count"]
        point.failed += row["count"] if row["status"] == Status.FAILED else 0
        point.input_tokens += row["input"]
        point.output_tokens += row["output"]
        if row["status"] == Status.COMPLETED:
            point.total_classes[row["speed"]] += row["count"]


def _add_first_outputs(points: dict[int, Point], window: Window) -> None:
    rows = (
        ended_in(window)
        .filter(first_output_ms__isnull=False)
        .order_by()
        .annotate(slot=Slot("finished_at", window.slot_secs), speed=_class_of("first_output_ms"))
        .values("slot", "speed")
        .annotate(count=Count("pk"))
    )
    for row in rows:
        point = points.get(row["slot"])
        if point is not None:
            point.first_classes[row["speed"]] += row["count"]


def _folded(rows: Iterable[tuple[str, Mapping[str, Any]]]) -> list[Use]:
    uses: dict[str, Use] = {}
    for name, row in rows:
        use = uses.setdefault(name, Use(name))
        use.responses += row["responses"]
        use.failed += row["failures"]
        use.input_tokens += row["input"]
        use.output_tokens += row["output"]
        use.tool_calls += row["calls"]
    return sorted(uses.values(), key=lambda use: (-use.tokens, -use.responses, use.name))[
        :SHOWN_ROWS
    ]


def _tools(window: Window) -> list[ToolUse]:
    bad = Q(status__in=(ToolStatus.FAILED, ToolStatus.INTERRUPTED))
    rows = (
        ToolEvent.objects.filter(started_at__gte=window.start)
        .order_by()
        .values("name")
        .annotate(calls=Count("pk"), failures=Count("pk", filter=bad))
        .order_by("-calls", "name")[:SHOWN_ROWS]
    )
    return [ToolUse(row["name"], row["calls"], row["failures"]) for row in rows]
