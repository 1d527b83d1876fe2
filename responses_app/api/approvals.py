"""``/v1/responses/{id}/approval``: tool calls that wait for somebody's consent."""

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response as JsonAnswer
from rest_framework.views import APIView

from responses_app.api.authentication import owner_of, principal_of
from responses_app.api.parsers import read_body
from responses_app.models import ToolEvent
from responses_app.models.tool_events import Decision
from responses_app.protocol.errors import InvalidRequest
from responses_app.requests.fields import boolean, short_text
from responses_app.services.lifecycle.approvals import Decider, decide, waiting_calls
from responses_app.services.lookup import find_response

ALIASES = {"approve": Decision.ONCE, "approved": Decision.ONCE, "allow": Decision.ONCE}


class ApprovalView(APIView):
    def get(self, request: Request, response_id: str) -> JsonAnswer:
        row = find_response(owner_of(request), response_id)
        decider = principal_of(request).decider
        pending = [shown_call(event, decider) for event in waiting_calls(row.pk)]
        return JsonAnswer(
            {"object": "hermes.response.approval", "response_id": row.pk, "pending": pending}
        )

    def post(self, request: Request, response_id: str) -> JsonAnswer:
        row = find_response(owner_of(request), response_id)
        choice, resolved = decide_as_asked(request, row.pk)
        said = {"response_id": row.pk, "choice": choice, "resolved": resolved}
        return JsonAnswer({"object": "hermes.response.approval_response", **said})


def decide_as_asked(request: Request, response_id: str) -> tuple[str, int]:
    body = read_body(request)
    decision = _read_choice(body.get("choice"))
    call_id = body.get("request_id")
    resolved = decide(
        response_id,
        decision,
        principal_of(request).decider,
        call_id=None if call_id is None else str(short_text(200)(call_id, "request_id")),
        is_for_all=any(
            boolean(body[name], name)
            for name in ("all", "resolve_all")
            if body.get(name) is not None
        ),
    )
    return str(decision), len(resolved)


def _read_choice(value: Any) -> Decision:
    known = {**ALIASES, **{str(decision): decision for decision in Decision}}
    if not isinstance(value, str) or value not in known:
        raise InvalidRequest(
            "choice must be once, session, always or deny.",
            param="choice",
            code="invalid_approval_choice",
        )
    return known[value]


def shown_call(event: ToolEvent, decider: Decider) -> dict[str, Any]:
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
