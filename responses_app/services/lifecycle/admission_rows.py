"""The rows of an admission: a turn of its session, the response, its input and its first events."""

from dataclasses import dataclass, replace
from typing import Any

from django.utils import timezone

from responses_app.dispatch import Reservation
from responses_app.eventlog import AdmittedRequest, Numbering, Segment, Tail, insert_fenced, stamped
from responses_app.models import InputItem, Response, Session
from responses_app.models.compiled_insert import CompiledInsert
from responses_app.protocol import events
from responses_app.protocol.events import Event
from responses_app.protocol.ids import item_id
from responses_app.protocol.items import Item
from responses_app.protocol.response_object import ResponseBody, initial_body
from responses_app.protocol.status import Status
from responses_app.services.history.placement import (
    FREE,
    Placement,
    Room,
    find_placement,
    make_room,
)
from responses_app.services.history.transcript import count_messages
from responses_app.services.lifecycle.admission import Admission, Admitted
from responses_app.services.lifecycle.approvals import Decider, decide_requests
from responses_app.services.lifecycle.chain_columns import chain_columns_at_admission
from responses_app.services.lifecycle.claim import (
    Claimed,
    FreshTurn,
    claim_columns,
    process_id,
)
from responses_app.services.lifecycle.read_ahead import ReadAhead
from responses_app.services.notes import read_notes

_response_insert = CompiledInsert(Response)
_input_insert = CompiledInsert(InputItem)
MANY_ITEMS = 20  # beyond this, one statement for all is cheaper than one that is compiled already


@dataclass(frozen=True)
class Stored:
    admitted: Admitted
    segment: Segment
    claimed: Claimed | None  # where this process runs the turn at once


def store_admission(
    response_id: str,
    admission: Admission,
    tail: Tail,
    reads: ReadAhead,
    reservation: Reservation | None = None,
) -> Stored:
    """In the writer: everything that has to be stored before a client can know of the response.

    With a reservation the turn is claimed too, unless it has to wait for another one.
    """
    placement = find_placement(admission, reads)
    first_new = len(admission.items) - len(placement.items)
    decider = Decider(admission.requested_by, admission.authority, admission.owner_id)
    decide_requests(admission.owner_id, decider, placement.items, first_new, admission.location)
    session_key = ""
    if admission.is_stored and admission.session_key is not None:
        session_key = admission.session_key
    turn = Session.objects.next_turn(
        placement.session.pk, session_key, has_server_history=placement.has_server_history
    )
    room = FREE
    if placement.has_server_history:
        room = make_room(placement.session, placement.previous, admission.turn_policy)
    status = _first_status(admission, room)
    is_claimed = reservation is not None and not room.must_wait and reservation.may_claim()
    columns = _admitted_columns(response_id, admission, placement)
    columns |= {"session_key": session_key, "turn": turn, "status": status}
    if is_claimed:
        columns |= claim_columns()
    row = _new_row(response_id, columns, placement)
    _response_insert.insert(row)
    body = _initial_body(row, admission, placement)
    numbering = Numbering(response_id, row.attempt)
    opening = _opening(body)
    segment = stamped(numbering.seal(opening))
    request = AdmittedRequest(admission.request, admission.ignored, placement.items)
    if admission.is_stored:
        request = replace(request, items=_identified(response_id, placement.items))
        _insert_input(_input_rows(response_id, request.items))
        insert_fenced([segment])
    else:
        tail.unstored_request = request
    claimed = None
    if is_claimed:
        claimed = Claimed(row, numbering, _fresh_turn(row, opening, request, placement))
    tail.clients.add(response_id)
    admitted = Admitted(
        response_id,
        placement.session.public_id,
        body,
        admission.on_disconnect,
        placement.skipped,
        placement.left_out,
        room.interrupted,
        tail,
        reader=response_id,
    )
    return Stored(admitted, segment, claimed)


def _first_status(admission: Admission, room: Room) -> Status:
    if admission.is_background or room.must_wait:
        return Status.QUEUED
    return Status.IN_PROGRESS


def _fresh_turn(
    row: Response, opening: list[Event], request: AdmittedRequest, placement: Placement
) -> FreshTurn:
    notes = placement.notes
    if notes is None:
        notes = read_notes(row)
    return FreshTurn(opening, request, placement.session.instructions, notes)


def _admitted_columns(
    response_id: str, admission: Admission, placement: Placement
) -> dict[str, Any]:
    repeated = placement.repeated
    now = timezone.now()
    columns = {
        "created_at": now,
        "accessed_at": now,
        "owner_id": admission.owner_id,
        "retry_of": admission.retry_of,
        "is_history_resent": repeated is not None,
        "is_history_in_chat_form": repeated is not None and repeated.is_chat_form,
        "kind": admission.kind,
        "tool_items": admission.tool_items,
        "client_tools": admission.client_tools,
        "approvals": admission.approvals,
        "reasoning_form": admission.reasoning_form,
        "model": admission.model,
        "requested_by": admission.requested_by,
        "is_stored": admission.is_stored,
        "is_background": admission.is_background,
        "waits_for_turn": placement.has_server_history,
        "on_disconnect": admission.on_disconnect,
    }
    if admission.is_stored:
        columns["message_count"] = count_messages(placement.items)
        columns["request"] = admission.request
        columns["ignored"] = admission.ignored + placement.left_out
    else:
        columns["lease_owner"] = process_id()  # only this process has the request
    return columns | chain_columns_at_admission(response_id, admission, placement)


def _new_row(response_id: str, columns: dict[str, Any], placement: Placement) -> Response:
    row: Response = _response_insert.new(id=response_id, **columns)
    row.session = placement.session
    if placement.previous is not None:
        row.previous = placement.previous
    if placement.conversation is not None:
        row.conversation = placement.conversation
    return row


def _initial_body(row: Response, admission: Admission, placement: Placement) -> ResponseBody:
    echo = admission.echo
    if placement.conversation is not None:
        echo = echo | {"conversation": {"id": placement.conversation.pk}}
    return initial_body(
        row.pk,
        model=admission.model,
        created_at=int(row.created_at.timestamp()),
        status=Status(row.status),
        echo=echo,
    )


def _opening(body: ResponseBody) -> list[Event]:
    second = events.IN_PROGRESS
    if body["status"] == Status.QUEUED:
        second = events.QUEUED
    return [
        {"type": events.CREATED, "response": body},
        {"type": second, "response": body},
    ]


def _identified(response_id: str, items: list[Item]) -> list[Item]:
    """The items with ids of their own."""
    identified: list[Item] = []
    for position, item in enumerate(items):
        own = item.copy()
        own["id"] = item_id(response_id, item["type"], position, is_input=True)
        identified.append(own)
    return identified


def _insert_input(rows: list[InputItem]) -> None:
    if len(rows) > MANY_ITEMS:
        InputItem.objects.bulk_create(rows)
        return
    for row in rows:
        _input_insert.insert(row)


def _input_rows(response_id: str, items: list[Item]) -> list[InputItem]:
    rows = []
    for position, item in enumerate(items):
        rows.append(_input_insert.new(response_id=response_id, position=position, item=item))
    return rows
