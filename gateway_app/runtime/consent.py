"""How a turn asks for the approval of a call: it waits, asks the client, or can do neither."""

from datetime import datetime
from typing import Any

from responses_app.http.principals import may_client_decide
from responses_app.models import (
    ApprovalMode,
    Approver,
    Decision,
    Response,
    ToolEvent,
    decisions_for,
)
from responses_app.services.lifecycle.tool_ledger import Intent

CANT_WAIT = (
    "Denied: this call needs an approval, and a response that is not stored can't wait for one."
)
CANT_ASK = (
    "Denied: this call needs an approval, and a chat has no way to ask for one. The call was not "
    "carried out, and your answer should explain this. To allow such calls, the user can send the "
    "request to /v1/responses or /v1/runs instead, or the operator of the server can set "
    "approval_wait: true in the profile, so that calls wait until they are decided."
)

DENIED = "Denied: this call was not allowed, and was not carried out."
EXPIRED = "Denied: this call was not allowed in time, and was not carried out."
USED_BEFORE = "Not carried out: the approval of this call was used in another turn."


def denial_of(row: Response, approver: str) -> str:
    """Why a call that needs an approval can't get one in this turn; empty if it can."""
    if row.approvals == ApprovalMode.DENY:
        return CANT_ASK
    if not row.is_stored and not asks_in_output(row, approver):
        return CANT_WAIT
    return ""


def asks_in_output(row: Response, approver: str) -> bool:
    """Does the turn end with a request to its client?"""
    return row.approvals == ApprovalMode.REQUEST and approver == Approver.CLIENT


def request_fields(
    row: Response, asked: Intent | ToolEvent, expires_at: datetime
) -> dict[str, Any]:
    """Of the event that asks for a decision."""
    choices = list(decisions_for(can_keep_consent=asked.can_keep_consent))
    client_choices: list[Decision] = []
    if may_client_decide(row, asked.approver):
        client_choices = choices
    return {
        "reason": asked.approval_reason,
        "expires_at": expires_at.timestamp(),
        "approver": str(asked.approver),
        "choices": choices,
        "client_choices": client_choices,
    }
