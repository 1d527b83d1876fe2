"""Approvals: calls that wait for a decision, and the decisions.

The functions that write run in the writer's transaction.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from django.db.models.functions import Now
from django.utils import timezone

from responses_app.database import database
from responses_app.dispatch import get_dispatcher
from responses_app.models import (
    ApprovalGrant,
    Approver,
    Decision,
    Response,
    ToolEvent,
    ToolStatus,
    decisions_for,
)
from responses_app.protocol.errors import ApiError, InvalidRequest
from responses_app.protocol.items import Item
from responses_app.services.audit import record_by
from responses_app.services.lifecycle.approval_requests import answered_events
from responses_app.services.lifecycle.settling_hook import run_settling_hook
from responses_app.services.lifecycle.tool_ledger import Intent
from responses_app.services.lookup import owner_of

KEPT_DECISIONS = (Decision.SESSION, Decision.ALWAYS)
# In the audit log. It outlives the content, so it has neither the arguments nor the id of the call.
DECIDED = {
    Decision.ONCE: "Allowed once",
    Decision.SESSION: "Allowed for its session",
    Decision.ALWAYS: "Allowed always",
    Decision.DENY: "Denied",
}


class ApprovalNotAllowed(ApiError):
    status = 403
    code = "approval_not_allowed"

    def __init__(self, response_id: str) -> None:
        super().__init__(
            f"This key may not decide about the calls of {response_id} that wait. An operator with "
            "the permission responses_app.decide_toolevent may, and so may the root key."
        )


class ApprovalNotKept(InvalidRequest):
    code = "invalid_approval_choice"

    def __init__(self, tool: str) -> None:
        super().__init__(
            f"choice must be once or deny for this call of {tool}: it runs outside the sandbox, "
            "where the same command can do something else the next time.",
            param="choice",
        )


class ApprovalNotPending(ApiError):
    status = 409
    code = "approval_not_pending"
    headers = {"x-should-retry": "false"}

    def __init__(self, response_id: str) -> None:
        super().__init__(
            f"No tool call of {response_id} waits for this decision; it may be decided or over."
        )


def park(row: Response, call_ids: Sequence[str]) -> bool:
    """Wait for these calls without a lease; not at all when a decision has come meanwhile.

    A decision about a call behind them is no reason to go on: calls run in their order.
    """
    # Another process that decides changes this row last: it has ended, or it waits for this one.
    Response.objects.lock(row.pk)
    waiting = ToolEvent.objects.filter(
        response_id=row.pk, call_id__in=call_ids, status=ToolStatus.AWAITING_APPROVAL
    )
    until = None
    if not waiting.exclude(decision="").exists():
        until = waiting.order_by("expires_at").values_list("expires_at", flat=True).first()
    is_parked = Response.objects.park(row.pk, row.attempt, until)
    if is_parked and until is not None:
        run_settling_hook(row, None)
    return is_parked


def waiting_calls(response_id: str) -> list[ToolEvent]:
    return list(ToolEvent.objects.undecided().filter(response_id=response_id).order_by("pk"))


@dataclass(frozen=True)
class Decider:
    """The name that is recorded, and the authority, which an unknown caller lacks."""

    actor: str
    authority: Approver | None
    user_id: int | None = None  # the operator, or the owner of the key

    def may_decide(self, event: ToolEvent) -> bool:
        return self.authority is not None and self.authority.covers(event.approver)

    def choices(self, event: ToolEvent) -> list[str]:
        if not self.may_decide(event):
            return []
        return list(decisions_for(can_keep_consent=event.can_keep_consent))


def decide(
    response_id: str,
    decision: Decision,
    decider: Decider,
    *,
    call_id: str | None = None,
    is_for_all: bool = False,
) -> list[str]:
    """Decide about the call named, about all, or about the one that waits longest.

    Returns the ids of the calls. Those that the decider may not decide are left out.
    """
    owner_id = owner_of(response_id)
    step = partial(_decide, response_id, decision, decider, call_id, is_for_all=is_for_all)

    def announce(_: list[str]) -> None:
        get_dispatcher().generate(response_id, owner_id)

    return database.submit(step, announce).result()


def _decide(
    response_id: str,
    decision: Decision,
    decider: Decider,
    call_id: str | None,
    *,
    is_for_all: bool,
) -> list[str]:
    waiting = ToolEvent.objects.undecided().filter(response_id=response_id, expires_at__gt=Now())
    if call_id is not None:
        waiting = waiting.filter(call_id=call_id)
    found = list(waiting.select_for_update().order_by("pk"))
    allowed = [event for event in found if decider.may_decide(event)]
    if decider.authority is None or (found and not allowed):
        raise ApprovalNotAllowed(response_id)
    chosen = allowed
    if not is_for_all:
        chosen = allowed[:1]
    if not chosen:
        raise ApprovalNotPending(response_id)
    for event in chosen:
        _record(event, decision, decider)
    Response.objects.unpark(response_id)
    return [event.call_id for event in chosen]


def decide_requests(
    owner_id: int,
    decider: Decider,
    items: Sequence[Item],
    first_index: int,
    location: Callable[[int], str],
) -> None:
    """Apply the answers of a client to the requests of an earlier turn.

    Every route that takes items ends here. With HERMES_AUTH=off, a command of the agent can reach
    them all, and must not approve its own calls.
    """
    for event, is_approved in answered_events(owner_id, items, first_index, location):
        if not decider.may_decide(event):
            raise ApprovalNotAllowed(event.response_id)
        decision = Decision.ONCE if is_approved else Decision.DENY
        _record(event, decision, decider)


def _record(event: ToolEvent, decision: Decision, decider: Decider) -> None:
    if decision not in decisions_for(can_keep_consent=event.can_keep_consent):
        raise ApprovalNotKept(event.name)
    event.decision = decision
    event.decided_by = decider.actor
    event.decided_at = timezone.now()
    event.save(update_fields=["decision", "decided_by", "decided_at"])
    if decider.user_id is not None:
        record_by(decider.user_id, event, f"{DECIDED[decision]} by {decider.actor}.")
    if decision is Decision.DENY:
        _end_request(event)
    if decision in KEPT_DECISIONS:
        _grant(event, decision, decider)


def _grant(event: ToolEvent, decision: Decision, decider: Decider) -> None:
    assert decider.authority is not None
    row = Response.objects.only("owner_id", "session_id").get(pk=event.response_id)
    session_id = None
    if decision is Decision.SESSION:
        session_id = row.session_id
    ApprovalGrant.objects.create(
        owner_id=row.owner_id,
        session_id=session_id,
        name=event.name,
        arguments_digest=Intent(event.call_id, event.name, event.arguments).digest,
        call=event,
        granted_by=decider.actor,
        approver=decider.authority,
    )


def _end_request(event: ToolEvent) -> None:
    """A turn that waits ends its call by itself; of a turn that has ended, the call is over."""
    is_open = Response.objects.open().filter(pk=event.response_id).exists()
    if not is_open:
        event.status = ToolStatus.DENIED
        event.finished_at = timezone.now()
        event.save(update_fields=["status", "finished_at"])
