"""``/v1/responses/{id}/approval``: tool calls that wait for an approval."""

from typing import Any

from rest_framework.response import Response

from responses_app.api.base import ApiRequest, ApiView
from responses_app.models import ToolEvent
from responses_app.requests.approvals import read_decision
from responses_app.services.lifecycle.approvals import Decider, decide, waiting_calls
from responses_app.services.lookup import find_response


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
    """Decide as the body asks; returns the decision and the number of calls it resolved."""
    given = read_decision(request.data)
    resolved = decide(
        response_id,
        given.decision,
        request.auth.decider,
        call_id=given.call_id,
        is_for_all=given.is_for_all,
    )
    return str(given.decision), len(resolved)


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
