"""Approvals: the wait for somebody's consent, and what was decided.

What writes here runs in the writer's transaction.
"""

from django.db.models.functions import Now
from django.utils import timezone

from responses_app.dispatch import get_dispatcher
from responses_app.errors import ApprovalNotPending
from responses_app.eventlog import event_store
from responses_app.models import ApprovalGrant, Response, ToolEvent
from responses_app.models.tool_events import Decision, ToolStatus
from responses_app.services.calls import Intent
from responses_app.services.lookup import owner_of

KEPT_DECISIONS = (Decision.SESSION, Decision.ALWAYS)


def park(row: Response) -> bool:
    """Wait without a lease; not at all when somebody was quicker with the decision."""
    waiting = ToolEvent.objects.filter(response_id=row.pk, status=ToolStatus.AWAITING_APPROVAL)
    is_decided = waiting.exclude(decision="").exists()
    until = None if is_decided else waiting.order_by("expires_at").values_list("expires_at", flat=True).first()
    return Response.objects.park(row.pk, row.attempt, until)


def waiting_calls(response_id: str) -> list[ToolEvent]:
    return list(ToolEvent.objects.undecided().filter(response_id=response_id).order_by("pk"))


def decide(
    response_id: str, decision: Decision, actor: str, *, call_id: str | None = None, is_for_all: bool = False
) -> list[str]:
    """Decide about the call named, about all, or about the one that waits longest; says which they were."""
    owner_id = owner_of(response_id)
    decided = event_store.submit(
        lambda: _decide(response_id, decision, actor, call_id, is_for_all=is_for_all),
        lambda _: get_dispatcher().generate(response_id, owner_id),
    )
    return decided.result()


def _decide(response_id: str, decision: Decision, actor: str, call_id: str | None, *, is_for_all: bool) -> list[str]:
    waiting = ToolEvent.objects.undecided().filter(response_id=response_id, expires_at__gt=Now())
    if call_id is not None:
        waiting = waiting.filter(call_id=call_id)
    chosen = list(waiting.select_for_update().order_by("pk")[: None if is_for_all else 1])
    if not chosen:
        raise ApprovalNotPending(response_id)
    for event in chosen:
        event.decision, event.decided_by, event.decided_at = decision, actor, timezone.now()
        event.save(update_fields=["decision", "decided_by", "decided_at"])
        if decision in KEPT_DECISIONS:
            _grant(event, decision, actor)
    Response.objects.unpark(response_id)
    return [event.call_id for event in chosen]


def _grant(event: ToolEvent, decision: Decision, actor: str) -> None:
    owner_id, session_id = Response.objects.values_list("owner_id", "session_id").get(pk=event.response_id)
    ApprovalGrant.objects.create(
        owner_id=owner_id,
        session_id=session_id if decision is Decision.SESSION else None,
        name=event.name,
        arguments_digest=Intent(event.call_id, event.name, event.arguments).digest,
        granted_by=actor,
    )
