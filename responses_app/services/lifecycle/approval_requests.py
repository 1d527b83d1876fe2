"""Requests in the output of a turn that ended: the client answers them in another turn.

The call keeps its event in the ledger, under the id of the request. The turn that carries it out
has an event of its own with the same id.
"""

from collections.abc import Callable, Iterable, Sequence

from django.conf import settings
from django.utils import timezone

from responses_app.models import ApprovalMode, Approver, Response, ToolEvent, ToolStatus
from responses_app.protocol.errors import InvalidRequest
from responses_app.protocol.ids import location_of_item
from responses_app.protocol.items import APPROVAL_REQUEST, APPROVAL_RESPONSE, Item, request_id_of
from responses_app.protocol.status import Status
from responses_app.services.chunks import in_chunks
from responses_app.services.lifecycle.approval_proofs import is_unaltered
from responses_app.services.lifecycle.tool_ledger import (
    Intent,
    check_fence,
    event_of,
    ledger_call_id,
)

CARRIED_OUT = "Approved, and carried out in {response}."


class ApprovalRequestNotFound(InvalidRequest):
    def __init__(self, request_id: str, param: str) -> None:
        super().__init__(f"No approval request found with the id {request_id}.", param=param)


class ApprovalRequestAltered(InvalidRequest):
    def __init__(self, request_id: str, param: str) -> None:
        super().__init__(
            f"The approval request {request_id} was altered. Send it back as the response had it: "
            "an approval counts for exactly the call that was asked about.",
            param=param,
        )


class AnsweredTwice(InvalidRequest):
    def __init__(self, request_id: str, param: str) -> None:
        super().__init__(
            f"The approval request {request_id} has two answers; send one.", param=param
        )


# -- the turn that asks -----------------------------------------------------------------
def open_requests(row: Response, status: str, output: Iterable[Item]) -> list[tuple[int, str]]:
    """The events of calls that the output asks about, and the ids of their requests."""
    if row.approvals != ApprovalMode.REQUEST or status != Status.COMPLETED:
        return []
    ids = [item["id"] for item in output if _is_own(item)]
    if not ids:
        return []
    waiting = ToolEvent.objects.filter(
        response_id=row.pk, status=ToolStatus.AWAITING_APPROVAL, approver=Approver.CLIENT
    )
    # Both are in the order of the calls.
    return list(zip(waiting.order_by("pk").values_list("pk", flat=True), ids, strict=False))


def keep_open(row: Response, requests: Sequence[tuple[int, str]]) -> None:
    """Their turn has ended, which ends all other calls."""
    for event_id, request_id in requests:
        ToolEvent.objects.filter(pk=event_id).update(
            call_id=ledger_call_id(row, request_id),
            status=ToolStatus.AWAITING_APPROVAL,
            finished_at=None,
        )


def _is_own(item: Item) -> bool:
    is_request = item["type"] == APPROVAL_REQUEST
    return is_request and item.get("server_label") in settings.HERMES_TOOL_LABELS


# -- the turn that answers --------------------------------------------------------------
def asked_events(owner_id: int, request_ids: Iterable[str]) -> dict[str, ToolEvent]:
    """The calls that requests are about, by their ids; a client may send thousands of them."""
    found: dict[str, ToolEvent] = {}
    for chunk in in_chunks(set(request_ids)):
        found |= _asked_events(owner_id, chunk)
    return found


def _asked_events(owner_id: int, request_ids: Sequence[str]) -> dict[str, ToolEvent]:
    responses: dict[str, str] = {}
    for request_id in request_ids:
        location = location_of_item(request_id)
        if location is not None:
            responses[request_id] = location.response_id
    own = Response.objects.filter(owner_id=owner_id).only("is_stored")
    rows = own.in_bulk(set(responses.values()))
    ledger_ids: dict[tuple[str, str], str] = {}
    for request_id, response_id in responses.items():
        if response_id in rows:
            call_id = ledger_call_id(rows[response_id], request_id)
            ledger_ids[response_id, call_id] = request_id
    call_ids = [call_id for _, call_id in ledger_ids]
    found: dict[str, ToolEvent] = {}
    for event in ToolEvent.objects.filter(response_id__in=rows, call_id__in=call_ids):
        asked_about = ledger_ids.get((event.response_id, event.call_id))
        if asked_about is not None:
            found[asked_about] = event
    return found


def run_event(owner_id: int, request_id: str) -> ToolEvent | None:
    """The call where it ran, if its turn was stored."""
    location = location_of_item(request_id)
    assert location is not None
    found = ToolEvent.objects.filter(call_id=request_id, response__owner_id=owner_id)
    return found.exclude(response_id=location.response_id).first()


def is_answer(item: Item) -> bool:
    """An answer to a request of this server."""
    if item["type"] != APPROVAL_RESPONSE:
        return False
    return location_of_item(request_id_of(item)) is not None


def answered_events(
    owner_id: int, items: Sequence[Item], first_index: int, location: Callable[[int], str]
) -> list[tuple[ToolEvent, bool]]:
    """The calls that new items decide, with the decisions.

    Those decided before, and those whose time is over, are left out.
    """
    asked = asked_events(owner_id, map(request_id_of, filter(is_answer, items)))
    answers: dict[str, bool] = {}
    found: dict[str, ToolEvent] = {}
    for index, item in enumerate(items, first_index):
        if not is_answer(item):
            continue
        request_id = request_id_of(item)
        param = f"{location(index)}.approval_request_id"
        is_approved = bool(item["approve"])
        if request_id in answers:
            if answers[request_id] != is_approved:
                raise AnsweredTwice(request_id, param)
            continue
        answers[request_id] = is_approved
        event = asked.get(request_id)
        if event is None:
            raise ApprovalRequestNotFound(request_id, param)
        is_open = event.status == ToolStatus.AWAITING_APPROVAL and not event.decision
        if is_open and not ToolEvent.objects.overdue().filter(pk=event.pk).exists():
            found[request_id] = event
    for index, item in enumerate(items, first_index):
        event = found.get(request_id_of(item))
        if event is not None and _is_own(item) and not is_unaltered(owner_id, event, item):
            raise ApprovalRequestAltered(request_id_of(item), location(index))
    return [(event, answers[request_id]) for request_id, event in found.items()]


def take_over(row: Response, intent: Intent, asked_id: int) -> bool:
    """This turn carries out a call that was approved; False if another turn did."""
    check_fence(row)
    asked = ToolEvent.objects.filter(pk=asked_id, status=ToolStatus.AWAITING_APPROVAL)
    taken = asked.update(
        status=ToolStatus.COMPLETED,
        output=CARRIED_OUT.format(response=row.pk),
        finished_at=timezone.now(),
    )
    if not taken:
        return False
    event_of(row, intent).save(force_insert=True)
    return True
