"""Counts over a window of time: throughput, latency, errors, tokens and the use of tools.

The database counts, from indexes alone. It returns one row per slot and class, however many
responses there are. Latencies are counted in classes: that is exact enough for a percentile, and
works on every database.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any

from django.core.cache import cache
from django.db.models import Case, Count, F, Func, IntegerField, Q, QuerySet, Sum, Value, When
from django.db.models.functions import Coalesce
from django.utils import timezone

from gateway_app.operations.dashboard.windows import Window
from responses_app.models import Response, ToolEvent, ToolStatus
from responses_app.protocol.status import Status
from responses_app.services.keys import actor_names

# Upper bounds in milliseconds, each at most twice the one before: percentiles are interpolated.
# fmt: off
CLASSES_MS = (
    10, 20, 35, 50, 75, 100, 150, 200, 300, 400, 500, 750, 1000, 1500, 2000, 3000, 4000, 5000,
    7500, 10_000, 15_000, 20_000, 30_000, 45_000, 60_000, 90_000, 120_000, 180_000, 300_000,
    600_000, 1_200_000, 2_400_000, 3_600_000, 7_200_000, 86_400_000,
)
# fmt: on
SHOWN_ROWS = 12


class Slot(Func):
    """The number of the slot that a time belongs to."""

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
    estimated: int = 0  # responses whose tokens no upstream has counted, or not all of them
    # The number of responses in each class of CLASSES_MS, by whole time and by first output.
    total_classes: Counter[int] = field(default_factory=Counter)
    first_classes: Counter[int] = field(default_factory=Counter)

    @property
    def error_percent(self) -> float | None:
        if not self.ended:
            return None
        return round(100 * self.failed / self.ended, 1)


@dataclass
class Use:
    """The use of one model, key or operator."""

    key: str  # as stored
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
    """Of the responses that ended, and of the calls that started, between two times."""

    start: datetime
    until: datetime
    points: list[Point]
    by_model: list[Use]
    by_key: list[Use]
    tools: list[ToolUse]

    @property
    def whole(self) -> Point:
        """The window as if it were one slot."""
        whole = Point(0)
        for point in self.points:
            whole.ended += point.ended
            whole.failed += point.failed
            whole.input_tokens += point.input_tokens
            whole.output_tokens += point.output_tokens
            whole.estimated += point.estimated
            whole.total_classes.update(point.total_classes)
            whole.first_classes.update(point.first_classes)
        return whole


def numbers(window: Window) -> Numbers:
    """Cached for a while, so that the cost does not grow with the number of open dashboards."""
    key = f"dashboard.numbers.{window.name}"
    found: Numbers | None = cache.get(key)
    if found is None:
        found = _count(window)
        cache.set(key, found, window.kept_secs)
    return found


def ended_in(window: Window) -> QuerySet[Response]:
    return ended_between(window.start, timezone.now())


def ended_between(start: datetime, until: datetime) -> QuerySet[Response]:
    return Response.objects.filter(
        finished_at__isnull=False, finished_at__gte=start, finished_at__lt=until
    )


def percentile(classes: Mapping[int, int], share: float) -> int | None:
    """The value below which this share of the responses is, interpolated within its class."""
    rank = share * sum(classes.values())
    if not rank:
        return None
    below = 0
    for lower, upper in pairwise((0, *CLASSES_MS)):
        count = classes.get(upper, 0)
        if count and below + count >= rank:
            return round(lower + (upper - lower) * (rank - below) / count)
        below += count
    return max(classes)


def _count(window: Window) -> Numbers:
    start, until = window.start, timezone.now()
    ended = ended_between(start, until).order_by()
    points = {at // window.slot_secs: Point(at) for at in window.slots}
    _add_ends(points, ended, window.slot_secs)
    _add_first_outputs(points, ended, window.slot_secs)
    used = list(
        ended.values("model", "requested_by").annotate(
            responses=Count("pk"),
            failures=Count("pk", filter=Q(status=Status.FAILED)),
            input=Sum("input_tokens"),
            output=Sum("output_tokens"),
            calls=Sum("tool_calls"),
        )
    )
    names = actor_names(row["requested_by"] for row in used)
    by_model: dict[str, Use] = {}
    by_key: dict[str, Use] = {}
    for row in used:
        actor = row["requested_by"]
        _add_use(by_model, row["model"], row["model"], row)
        _add_use(by_key, actor, names.get(actor, actor or "unknown"), row)
    return Numbers(
        start=start,
        until=until,
        points=list(points.values()),
        by_model=_most_used(by_model),
        by_key=_most_used(by_key),
        tools=_tools(start, until),
    )


def _class_of(column: str) -> Case:
    bounds = []
    for upper in CLASSES_MS:
        is_below = Q((f"{column}__lte", upper))
        bounds.append(When(is_below, then=Value(upper)))
    return Case(*bounds, default=Value(CLASSES_MS[-1]), output_field=IntegerField())


def _add_ends(points: dict[int, Point], ended: QuerySet[Response], slot_secs: int) -> None:
    rows = (
        ended.annotate(slot=Slot("finished_at", slot_secs), speed=_class_of("total_ms"))
        .values("slot", "status", "speed")
        .annotate(
            count=Count("pk"),
            input=Sum("input_tokens"),
            output=Sum("output_tokens"),
            estimated=Count("pk", filter=Q(is_usage_estimated=True)),
        )
    )
    for row in rows:
        point = points.get(row["slot"])
        if point is None:  # it ended after the slots were computed
            continue
        point.ended += row["count"]
        point.input_tokens += row["input"]
        point.output_tokens += row["output"]
        point.estimated += row["estimated"]
        if row["status"] == Status.FAILED:
            point.failed += row["count"]
        if row["status"] == Status.COMPLETED:
            point.total_classes[row["speed"]] += row["count"]


def _add_first_outputs(points: dict[int, Point], ended: QuerySet[Response], slot_secs: int) -> None:
    rows = (
        ended.filter(first_output_ms__isnull=False)
        .annotate(slot=Slot("finished_at", slot_secs), speed=_class_of("first_output_ms"))
        .values("slot", "speed")
        .annotate(count=Count("pk"))
    )
    for row in rows:
        point = points.get(row["slot"])
        if point is not None:
            point.first_classes[row["speed"]] += row["count"]


def _add_use(uses: dict[str, Use], key: str, name: str, row: Mapping[str, Any]) -> None:
    use = uses.setdefault(key, Use(key, name))
    use.responses += row["responses"]
    use.failed += row["failures"]
    use.input_tokens += row["input"]
    use.output_tokens += row["output"]
    use.tool_calls += row["calls"]


def _most_used(uses: dict[str, Use]) -> list[Use]:
    return sorted(uses.values(), key=_use_order)[:SHOWN_ROWS]


def _use_order(use: Use) -> tuple[int, int, str]:
    return (-use.tokens, -use.responses, use.name)


def _tools(start: datetime, until: datetime) -> list[ToolUse]:
    bad = Q(status__in=(ToolStatus.FAILED, ToolStatus.INTERRUPTED))
    rows = (
        ToolEvent.objects.filter(started_at__gte=start, started_at__lt=until)
        .order_by()
        # An expression: SQLite would read the whole index of names to group by the column.
        .values(tool=Coalesce("name", Value("")))
        .annotate(calls=Count("pk"), failures=Count("pk", filter=bad))
        .order_by("-calls", "tool")[:SHOWN_ROWS]
    )
    return [ToolUse(row["tool"], row["calls"], row["failures"]) for row in rows]
