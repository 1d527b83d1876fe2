"""The steps of the tool ledger. A step of an older attempt is refused.

For an unstored response, a row has the name of the tool, its status and its times, and no content.
"""

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models.functions import Now
from django.utils import timezone

from responses_app.eventlog import Fenced
from responses_app.models import ApprovalGrant, Approver, Response, ToolEvent, ToolStatus


@dataclass(frozen=True)
class Intent:
    """A call that is about to run, and why it may need an approval first.

    ``name`` is that of a tool the server has, or ``UNKNOWN_TOOL``: an invented name is content.
    """

    call_id: str
    name: str
    arguments: str
    approval_reason: str = ""
    approval_time: timedelta = timedelta()  # how long it waits for an approval
    approver: str = Approver.OPERATOR
    can_keep_consent: bool = True
    denial: str = ""  # the result of a call that needs an approval and can't wait for one

    @property
    def digest(self) -> str:
        return hashlib.sha256(f"{self.name}\0{self.arguments}".encode()).hexdigest()


@dataclass(frozen=True)
class Recorded:
    status: ToolStatus
    expires_at: datetime | None = None


def record_intent(row: Response, intent: Intent) -> Recorded:
    """Store the call: it runs, or waits for an approval, or is denied where it can't wait."""
    check_fence(row)
    event = event_of(row, intent)
    if intent.approval_reason and not is_granted(row, intent):
        if intent.denial:
            event.status = ToolStatus.DENIED
            event.finished_at = timezone.now()
            if row.is_stored:
                event.output = intent.denial
        else:
            _await_approval(event, intent)
    _insert(event)
    return Recorded(ToolStatus(event.status), event.expires_at)


def request_approval(row: Response, intent: Intent) -> ToolEvent:
    """Store a call that waits for an approval."""
    check_fence(row)
    event = event_of(row, intent)
    _await_approval(event, intent)
    _insert(event)
    return event


def event_of(row: Response, intent: Intent) -> ToolEvent:
    event = ToolEvent(
        response_id=row.pk,
        attempt=row.attempt,
        call_id=ledger_call_id(row, intent.call_id),
        name=intent.name,
        approver=intent.approver,
        can_keep_consent=intent.can_keep_consent,
        status=ToolStatus.RUNNING,
    )
    if row.is_stored:
        event.arguments = intent.arguments
        event.approval_reason = intent.approval_reason
    return event


def _await_approval(event: ToolEvent, intent: Intent) -> None:
    event.status = ToolStatus.AWAITING_APPROVAL
    event.expires_at = Now() + intent.approval_time


def _insert(event: ToolEvent) -> None:
    event.save(force_insert=True)
    if event.expires_at is not None:
        event.refresh_from_db(fields=["expires_at"])


def start_call(row: Response, call_id: str) -> None:
    """An open call runs now: one that was approved, or one that may run again."""
    check_fence(row)
    if not ToolEvent.objects.start(row.pk, ledger_call_id(row, call_id), row.attempt):
        raise Fenced(row.pk)


def end_call(
    row: Response, call_id: str, status: ToolStatus, output: str, images: str = ""
) -> None:
    check_fence(row)
    if not row.is_stored:
        output = images = ""
    ledger_id = ledger_call_id(row, call_id)
    if not ToolEvent.objects.end(row.pk, ledger_id, status, output, images):
        raise Fenced(row.pk)


def ledger_call_id(row: Response, call_id: str) -> str:
    """The id of a call in the ledger: models write ids, so that of an unstored call is hashed."""
    if row.is_stored:
        return call_id
    return "unstored_" + hashlib.sha256(f"{row.pk}\0{call_id}".encode()).hexdigest()[:32]


def check_fence(row: Response) -> None:
    """Locked until the commit, so that no claim comes in between."""
    mine = Response.objects.open().filter(pk=row.pk, attempt=row.attempt)
    if mine.select_for_update().values_list("pk", flat=True).first() is None:
        raise Fenced(row.pk)


def is_granted(row: Response, intent: Intent) -> bool:
    if not intent.can_keep_consent:
        return False
    return ApprovalGrant.objects.covers(
        row.owner_id, row.session_id, intent.name, intent.digest, intent.approver
    )
