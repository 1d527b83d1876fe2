"""The lists of the dashboard: short, the newest or the worst first, each read by an index."""

from dataclasses import dataclass
from datetime import timedelta

from django.db.models import Case, QuerySet, Value, When
from django.db.models.functions import Left
from django.utils import timezone

from gateway_app.operations.dashboard.numbers import ended_in
from gateway_app.operations.dashboard.windows import Window
from responses_app.models import (
    Response,
    Session,
    ToolEvent,
    is_held,
    is_parked,
    opening_excerpt,
    question_excerpt,
)
from responses_app.protocol.status import Status
from responses_app.services.keys import actor_names
from responses_app.services.lifecycle.waiting import Wait, read_waits

SHOWN_OPEN = 25
SHOWN_SESSIONS = 10
SHOWN_ENDED = 8
SHOWN_APPROVALS = 25
SHOWN_ARGUMENT_CHARS = 120

# What a line shows. Whole rows would also read the requests and the outputs.
LINE = (
    "id",
    "status",
    "kind",
    "model",
    "created_at",
    "finished_at",
    "total_ms",
    "first_output_ms",
    "attempt",
    "cancel_requested_at",
    "incomplete_reason",
    "error",
    "requested_by",
    "retry_of",
    "turn",
    "previous_id",
    "waits_for_turn",
    "lease_until",
    "parked_until",
    "session__public_id",
    "session__title",
    "owner__username",
)


@dataclass(frozen=True)
class Running:
    row: Response
    state: str
    age: timedelta
    asked_by: str
    wait: Wait | None = None


def open_responses() -> list[Running]:
    now = timezone.now()
    lines = _lines(Response.objects.open()).annotate(asked=question_excerpt(), state=_state())
    rows = list(lines.order_by("created_at")[:SHOWN_OPEN])
    names = actor_names(row.requested_by for row in rows)
    waits = read_waits(rows)
    found = []
    for row in rows:
        asked_by = names.get(row.requested_by, row.requested_by)
        age = now - row.created_at
        found.append(Running(row, row.state, age, asked_by, waits.get(row.pk)))
    return found


def _state() -> Case:
    return Case(
        When(cancel_requested_at__isnull=False, then=Value("being cancelled")),
        When(is_held(), then=Value("running")),
        When(is_parked(), then=Value("awaiting approval")),
        default=Value("queued"),
    )


def recent_sessions() -> list[Session]:
    newest = Session.objects.select_related("owner").annotate(opening=opening_excerpt())
    return list(newest.order_by("-last_active_at")[:SHOWN_SESSIONS])


def waiting_approvals() -> list[ToolEvent]:
    """Only the beginnings of their arguments, which may have megabytes."""
    waiting = ToolEvent.objects.for_operators().defer("arguments", "output", "images")
    shown = waiting.annotate(first_arguments=Left("arguments", SHOWN_ARGUMENT_CHARS + 1))
    return list(shown.select_related("response__owner").order_by("started_at")[:SHOWN_APPROVALS])


def count_approvals() -> int:
    return ToolEvent.objects.for_operators().count()


def slowest(window: Window) -> list[Response]:
    ended = ended_in(window).order_by("-total_ms", "id")
    return _read_lines(ended.values_list("pk", flat=True))


def failed(window: Window) -> list[Response]:
    ended = ended_in(window).filter(status=Status.FAILED).order_by("-finished_at")
    return _read_lines(ended.values_list("pk", flat=True))


def _read_lines(ids: "QuerySet[Response, str]") -> list[Response]:
    """First the ids, from the index, then their rows: a sort of whole rows would read them all."""
    chosen = list(ids[:SHOWN_ENDED])
    rows = _lines(Response.objects.filter(pk__in=chosen)).in_bulk()
    return [rows[pk] for pk in chosen if pk in rows]


def _lines(rows: "QuerySet[Response]") -> "QuerySet[Response]":
    return rows.select_related("session", "owner").only(*LINE)
