"""``/live/{response_id}``: a stored response while it runs and after; operators cancel and decide."""

import time
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_GET, require_POST

from gateway_app.operations.dashboard.staff import (
    DECIDE,
    OPERATE,
    VIEW,
    operator_of,
    staff_page,
)
from responses_app.admin.timeline import cut_text
from responses_app.http.principals import operator_actor, operator_decider
from responses_app.models import Decision, Response
from responses_app.protocol.errors import ApiError, InvalidRequest
from responses_app.protocol.items import Item
from responses_app.protocol.status import Status
from responses_app.services.history.branches import read_parents
from responses_app.services.history.chain import input_of
from responses_app.services.keys import actor_names
from responses_app.services.lifecycle.approvals import decide
from responses_app.services.lifecycle.cancel import request_cancel
from responses_app.services.lifecycle.waiting import Wait, read_waits
from responses_app.services.lookup import any_response


@require_GET
@staff_page(VIEW)
def live_page(request: HttpRequest, response_id: str) -> HttpResponseBase:
    try:
        row = any_response(response_id, must_be_stored=False)
    except ApiError as error:
        return render(
            request, "dashboard/missing.html", {"message": error.message}, status=error.status
        )
    neighbours = Response.objects.filter(
        session_id=row.session_id, turn__in=(row.turn - 1, row.turn + 1)
    )
    turns = dict(neighbours.values_list("turn", "pk"))
    decisions = []
    if request.user.has_perm(DECIDE):
        decisions = Decision.values
    return render(
        request,
        "dashboard/live.html",
        {
            "row": row,
            "asked_by": actor_names([row.requested_by]).get(row.requested_by, row.requested_by),
            "input": [_card(item) for item in input_of(row.pk)],
            "earlier": turns.get(row.turn - 1),
            "later": turns.get(row.turn + 1),
            "wait": _wait(row),
            "parent": read_parents([row]).get(row.pk),
            "retries": Response.objects.filter(retry_of=row.pk)
            .order_by("created_at")
            .only("status"),
            "may_cancel": request.user.has_perm(OPERATE),
            "decisions": decisions,
            "server_ms": round(time.time() * 1000),
        },
    )


def _wait(row: Response) -> Wait | None:
    """Of a queued one; the card of a call shows that it waits for approval."""
    if row.status != Status.QUEUED:
        return None
    return read_waits([row]).get(row.pk)


def _card(item: Item) -> dict[str, Any]:
    """An input item as the page shows it: its title and its texts."""
    content: Any = ""
    for field in ("content", "output", "arguments", "input"):
        content = content or item.get(field)
    if not isinstance(content, list):
        content = [{"text": content}]
    return {
        "role": item.get("role", "item"),
        "title": item.get("role") or item["type"],
        "texts": [cut_text(_part_text(part)) for part in content],
    }


def _part_text(part: dict[str, Any]) -> str:
    text = part.get("text") or part.get("refusal") or f"[{part.get('type', 'content')}]"
    return str(text)


@require_POST
@staff_page(OPERATE)
def cancel(request: HttpRequest, response_id: str) -> HttpResponseBase:
    try:
        row = any_response(response_id, must_be_stored=False)
        operator = operator_of(request)
        actor = operator_actor(operator.get_username())
        is_requested = request_cancel(row.pk, actor, operator).result()
    except ApiError as error:
        return _refused(error)
    return JsonResponse({"response_id": row.pk, "requested": is_requested})


@require_POST
@staff_page(DECIDE)
def approve(request: HttpRequest, response_id: str) -> HttpResponseBase:
    try:
        row = any_response(response_id)
        resolved = decide(
            row.pk,
            _choice(request.POST.get("choice", "")),
            operator_decider(operator_of(request)),
            call_id=request.POST.get("call_id") or None,
        )
    except ApiError as error:
        return _refused(error)
    return JsonResponse({"response_id": row.pk, "resolved": resolved})


def _choice(value: str) -> Decision:
    if value not in Decision.values:
        raise InvalidRequest(
            "choice must be once, session, always or deny.",
            param="choice",
            code="invalid_approval_choice",
        )
    return Decision(value)


def _refused(error: ApiError) -> HttpResponse:
    return JsonResponse(error.body(), status=error.status)
