"""Calls that the output of an earlier turn asked the client about, and what came of them."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from django.conf import settings

from gateway_app.agent.approval_items import (
    ALTERED,
    DENIED_BY_CLIENT,
    NOT_APPROVED,
    as_function_call,
    carried_out,
    is_own_request,
)
from gateway_app.agent.tools import ToolCall
from gateway_app.runtime.consent import USED_BEFORE
from gateway_app.runtime.visible_results import ResultCap
from responses_app.models import Decision, Response, ToolEvent, ToolStatus
from responses_app.protocol.closing import INTERRUPTED
from responses_app.protocol.items import APPROVAL_RESPONSE, Item, all_call_ids, request_id_of
from responses_app.services.lifecycle.approval_proofs import is_unaltered
from responses_app.services.lifecycle.approval_requests import asked_events, run_event


@dataclass
class RequestedCalls:
    pending: list[ToolCall] = field(default_factory=list)  # approved, and not begun
    approved: dict[str, int] = field(default_factory=dict)  # call id -> the event that has asked
    outputs: dict[str, str] = field(default_factory=dict)  # of the others, by call id


def read_requested(
    row: Response, items: list[Item], ledger: Collection[str], cap: ResultCap
) -> RequestedCalls:
    """``items`` are the conversation, ``ledger`` the ids of calls that this turn has begun."""
    found = RequestedCalls()
    done = carried_out(items)
    shown = all_call_ids(items)
    reasons = _reasons(items)
    requests = [item for item in items if is_own_request(item, settings.HERMES_TOOL_LABELS)]
    asked = asked_events(row.owner_id, map(request_id_of, requests))
    for item in requests:
        request_id = request_id_of(item)
        if request_id in done:
            continue
        event = asked.get(request_id)
        is_begun = request_id in ledger
        is_approved = event is not None and _is_approved(event)
        if event is not None and is_approved:
            found.approved[request_id] = event.pk
        if request_id in shown:
            continue
        if event is None or not (is_begun or is_approved):
            found.outputs[request_id] = _output(row, event, request_id, reasons, cap)
        elif is_begun or is_unaltered(row.owner_id, event, item):
            found.pending.append(_call(event, item, request_id))
        else:
            del found.approved[request_id]
            found.outputs[request_id] = ALTERED
        shown.add(request_id)  # a copy of the request behind it is not looked at
    return found


def _is_approved(event: ToolEvent) -> bool:
    is_open = event.status == ToolStatus.AWAITING_APPROVAL
    return is_open and event.decision not in ("", Decision.DENY)


def _call(event: ToolEvent, item: Item, request_id: str) -> ToolCall:
    """As it was asked about, or as it is proved to be unaltered."""
    given = as_function_call(item, request_id)
    return ToolCall(request_id, event.name, event.arguments or given["arguments"])


def _output(
    row: Response,
    event: ToolEvent | None,
    request_id: str,
    reasons: dict[str, str],
    cap: ResultCap,
) -> str:
    is_denied = event is not None and event.decision == Decision.DENY
    if event is not None and event.is_over and not is_denied:  # it ran: a later denial is too late
        earlier = run_event(row.owner_id, request_id)
        if earlier is None:
            return INTERRUPTED
        if not earlier.is_over:
            return USED_BEFORE
        return cap.visible(earlier.name, earlier.output)
    if is_denied or request_id in reasons:
        return f"{DENIED_BY_CLIENT} {reasons.get(request_id, '')}".strip()
    return NOT_APPROVED


def _reasons(items: Iterable[Item]) -> dict[str, str]:
    """Of the answers that deny."""
    reasons: dict[str, str] = {}
    for item in items:
        if item["type"] == APPROVAL_RESPONSE and item.get("approve") is False:
            reasons[request_id_of(item)] = item.get("reason") or ""
    return reasons
