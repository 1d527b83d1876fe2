"""The ledger's steps. Each names its attempt, and is refused when a newer one has the response.

Of an unstored response, a row has the tool's name, its status and its times, and nothing of the call.
"""

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models.functions import Now

from responses_app.eventlog import Fenced
from responses_app.models import ApprovalGrant, Response, ToolEvent
from responses_app.models.tool_events import Approver, ToolStatus


@dataclass(frozen=True)
class Intent:
    """A call that is about to run, and why it may need consent first.

    ``name`` is that of a tool the server has, or ``UNKNOWN_TOOL``: what a model makes up is content.
    """

    call_id: str
    name: str
    arguments: str
    approval_reason: str = ""
    approval_time: timedelta = timedelta()  # how long it waits for consent
    approver: str = Approver.OPERATOR
    can_keep_consent: bool = True

    @property
    def digest(self) -> str:
        return hashlib.sha256(f"{self.name}\0{self.arguments}".encode()).hexdigest()


@dataclass(frozen=True)
class Recorded:
    status: ToolStatus
    expires_at: datetime | None = None


def record_intent(row: Response, intent: Intent) -> Recorded:
    """Write the call down: it runs, waits, or is denied where no operator could see what it waits for."""
    _check_fence(row)
    status = ToolStatus.RUNNING
    if intent.approval_reason and not _is_granted(row, intent):
        status = ToolStatus.AWAITING_APPROVAL if row.is_stored else ToolStatus.DENIED
    is_waiting = status is ToolStatus.AWAITING_APPROVAL
    event = ToolEvent.objects.create(
        response_id=row.pk,
        attempt=row.attempt,
        call_id=ledger_call_id(row, intent.call_id),
        name=intent.name,
        arguments=intent.arguments if row.is_stored else "",
        approval_reason=intent.approval_reason if row.is_stored else "",
        expires_at=Now() + intent.approval_time if is_waiting else None,
        approver=intent.approver,
        can_keep_consent=intent.can_keep_consent,
        status=status,
    )
    if is_waiting:
        event.refresh_from_db(fields=["expires_at"])
    return Recorded(status, event.expires_at)


def start_call(row: Response, call_id: str) -> None:
    """An open call runs now: one that was consented to, or one that may run again."""
    _check_fence(row)
    if not ToolEvent.objects.start(row.pk, ledger_call_id(row, call_id), row.attempt):
        raise Fenced(row.pk)


def end_call(row: Response, call_id: str, status: ToolStatus, output: str) -> None:
    _check_fence(row)
    kept = output if row.is_stored else ""
    if not ToolEvent.objects.end(row.pk, ledger_call_id(row, call_id), status, kept):
        raise Fenced(row.pk)


def ledger_call_id(row: Response, call_id: str) -> str:
    """The id under which the ledger has a call: models make ids up, so an unstored one is hashed."""
    if row.is_stored:
        return call_id
    return "unstored_" + hashlib.sha256(f"{row.pk}\0{call_id}".encode()).hexdigest()[:32]


def _check_fence(row: Response) -> None:
    """Locked until the commit, so that no claim comes in between."""
    mine = Response.objects.open().filter(pk=row.pk, attempt=row.attempt)
    if mine.select_for_update().values_list("pk", flat=True).first() is None:
        raise Fenced(row.pk)


def _is_granted(row: Response, intent: Intent) -> bool:
    if not intent.can_keep_consent:
        return False
    return ApprovalGrant.objects.covers(
        row.owner_id, row.session_id, intent.name, intent.digest, intent.approver
    )
