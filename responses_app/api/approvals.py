"""``/v1/responses/{id}/approval``: tool calls that wait for an approval."""

from typing import Any

from rest_framework.response import Response

from responses_app.api.base import ApiRequest, ApiView
from responses_app.models import ToolEvent
from responses_app.models.tool_events import Decision
from responses_app.protocol.errors import InvalidRequest
from responses_app.requests.fields import boolean, short_text
from responses_app.services.lifecycle.approvals import Decider, decide, waiting_calls
from responses_app.services.lookup import find_response

ALIASES = {"approve": Decision.ONCE, "approved": Decision.ONCE, "allow": Decision.ONCE}
CHOICES = ALIASES | {str(decision): decision for decision in Decision}
MAX_CALL_ID_CHARS = 200


class ApprovalView(ApiView):
    def get(self, request: ApiRequest, response_id: str) -> Response:
        row = find_response(request.user.pk, response_id)
        pending = [call_payload(event, request.auth.decider) for event in waiting_calls(row.pk)]
        return Response(
            {"object": "hermes.response.approval", "response_id": row.pk, "pending": pending}
        )

    def post(self, request: ApiRequest, response_id: str) -> Response:
        row = find_response(request.user.pk, response_id)
        choice, resolved = apply_decision(request, row.pk)
        return Response(
            {
                "object": "hermes.response.approval_response",
                "response_id": row.pk,
                "choice": choice,
                "resolved": resolved,
            }
        )


def apply_decision(request: ApiRequest, response_id: str) -> tuple[str, int]:
    """Decide as the body says; returns the decision and the number of calls it resolved."""
    body = request.data
    decision = _read_choice(body.get("choice"))
    call_id = body.get("request_id")
    if call_id is not None:
        call_id = str(short_text(MAX_CALL_ID_CHARS)(call_id, "request_id"))
    is_for_all = False
    for name in ("all", "resolve_all"):
        if not is_for_all and body.get(name) is not None:
            is_for_all = boolean(body[name], name)
    decider = request.auth.decider
    resolved = decide(response_id, decision, decider, call_id=call_id, is_for_all=is_for_all)
    return str(decision), len(resolved)


def call_payload(event: ToolEvent, decider: Decider) -> dict[str, Any]:
    assert event.expires_at is not None
    return {
        "request_id": event.call_id,
        "call_id": event.call_id,
        "tool": event.name,
        "arguments": event.arguments,
        "reason": event.approval_reason,
        "requested_at": event.started_at.timestamp(),
        "expires_at": event.expires_at.timestamp(),
        "approver": event.approver,
        "choices": decider.choices(event),
    }


def _read_choice(value: Any) -> Decision:
    if not isinstance(value, str) or value not in CHOICES:
        raise InvalidRequest(
            "choice must be once, session, always or deny.",
            param="choice",
            code="invalid_approval_choice",
        )
    return CHOICES[value]
