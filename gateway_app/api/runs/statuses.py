"""The states of a run: those of its response, as Hermes names them."""

from enum import StrEnum

from django.db.models import Case, CharField, Q, Value, When

from responses_app.models import Kind, Response, ResponseQuerySet
from responses_app.protocol.status import LIMITS, OPEN, IncompleteReason, Status

# A turn of a session's chat is also a run.
RUN_KINDS = (Kind.RUNS, Kind.SESSION_CHAT)


class RunStatus(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    WAITING_FOR_APPROVAL = "waiting_for_approval"
    STOPPING = "stopping"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"


def ended_status(status: str, incomplete_reason: str | None) -> RunStatus:
    if status == Status.INCOMPLETE:
        if incomplete_reason == IncompleteReason.SERVER_INTERRUPTED:
            return RunStatus.INTERRUPTED
        if incomplete_reason in LIMITS:
            return RunStatus.COMPLETED
        return RunStatus.FAILED
    return RunStatus(status)


def runs_of(owner_id: int) -> ResponseQuerySet:
    """The owner's runs, each with its ``run_status``."""
    mine = Response.objects.visible_to(owner_id).filter(kind__in=RUN_KINDS, deleted_at__isnull=True)
    return mine.select_related("session").annotate(
        run_status=Case(
            When(
                Q(status__in=OPEN, cancel_requested_at__isnull=False),
                then=Value(RunStatus.STOPPING),
            ),
            When(
                Q(status__in=OPEN, parked_until__isnull=False),
                then=Value(RunStatus.WAITING_FOR_APPROVAL),
            ),
            When(Q(status=Status.IN_PROGRESS), then=Value(RunStatus.RUNNING)),
            When(
                Q(status=Status.INCOMPLETE, incomplete_reason=IncompleteReason.SERVER_INTERRUPTED),
                then=Value(RunStatus.INTERRUPTED),
            ),
            When(
                Q(status=Status.INCOMPLETE, incomplete_reason__in=LIMITS),
                then=Value(RunStatus.COMPLETED),
            ),
            When(Q(status=Status.INCOMPLETE), then=Value(RunStatus.FAILED)),
            default="status",
            output_field=CharField(),
        )
    )
