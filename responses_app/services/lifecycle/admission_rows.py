"""The rows of an admission: a turn of its session, the response, its input and its first events."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone

from responses_app.eventlog import Numbering, Segment, Tail, UnstoredRequest, insert_fenced, stamped
from responses_app.models import InputItem, Response, Session
from responses_app.protocol import events
from responses_app.protocol.events import Event
from responses_app.protocol.ids import item_id
from responses_app.protocol.response_object import ResponseBody, initial_body
from responses_app.protocol.status import Status
from responses_app.services.history.placement import FREE, Placement, find_placement, make_room
from responses_app.services.history.transcript import count_messages
from responses_app.services.lifecycle.admission import Admission, Admitted
from responses_app.services.lifecycle.chain_columns import chain_columns_at_admission
from responses_app.services.lifecycle.claim import PROCESS_ID
from responses_app.services.lifecycle.read_ahead import ReadAhead


@dataclass(frozen=True)
class Stored:
    admitted: Admitted
    segment: Segment


def store_admission(response_id: str, admission: Admission, tail: Tail, reads: ReadAhead) -> Stored:
    """In the writer: everything that has to be stored before a client can know of the response."""
    placement = find_placement(admission, reads)
    session_key = ""
    if admission.is_stored and admission.session_key is not None:
        session_key = admission.session_key
    turn = Session.objects.next_turn(
        placement.session.pk, session_key, has_server_history=placement.has_server_history
    )
    room = FREE
    if placement.has_server_history:
        room = make_room(placement.session, placement.previous, admission.turn_policy)
    status = Status.IN_PROGRESS
    if admission.is_background or room.must_wait:
        status = Status.QUEUED
    now = timezone.now()
    columns = {
        "session_key": session_key,
        "turn": turn,
        "status": status,
        "created_at": now,
        "accessed_at": now,
    }
    columns |= _admitted_columns(response_id, admission, placement)
    Response.objects.create(id=response_id, **columns)
    body = _initial_body(response_id, admission, placement, status, now)
    segment = _opening(response_id, body)
    if admission.is_stored:
        InputItem.objects.bulk_create(_input_rows(response_id, placement))
        insert_fenced([segment])
    else:
        tail.unstored_request = UnstoredRequest(
            admission.request, admission.ignored, placement.items
        )
    tail.clients.add(response_id)
    admitted = Admitted(
        response_id,
        placement.session.public_id,
        body,
        admission.on_disconnect,
        placement.skipped,
        room.interrupted,
        tail,
        reader=response_id,
    )
    return Stored(admitted, segment)


def _admitted_columns(
    response_id: str, admission: Admission, placement: Placement
) -> dict[str, Any]:
    repeated = placement.repeated
    columns = {
        "owner_id": admission.owner_id,
        "session": placement.session,
        "previous": placement.previous,
        "conversation": placement.conversation,
        "is_history_resent": repeated is not None,
        "is_history_in_chat_form": repeated is not None and repeated.is_chat_form,
        "kind": admission.kind,
        "tool_items": admission.tool_items,
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
        columns["ignored"] = list(admission.ignored)
    else:
        columns["lease_owner"] = PROCESS_ID  # only this process has the request
    return columns | chain_columns_at_admission(response_id, admission, placement)


def _initial_body(
    response_id: str,
    admission: Admission,
    placement: Placement,
    status: Status,
    created_at: datetime,
) -> ResponseBody:
    echo = admission.echo
    if placement.conversation is not None:
        echo = echo | {"conversation": {"id": placement.conversation.pk}}
    return initial_body(
        response_id,
        model=admission.model,
        created_at=int(created_at.timestamp()),
        status=status,
        echo=echo,
    )


def _opening(response_id: str, body: ResponseBody) -> Segment:
    second = events.IN_PROGRESS
    if body["status"] == Status.QUEUED:
        second = events.QUEUED
    opening: list[Event] = [
        {"type": events.CREATED, "response": body},
        {"type": second, "response": body},
    ]
    return stamped(Numbering(response_id, attempt=0).seal(opening))


def _input_rows(response_id: str, placement: Placement) -> list[InputItem]:
    rows = []
    for position, item in enumerate(placement.items):
        own_id = item_id(response_id, item["type"], position, is_input=True)
        row = InputItem(response_id=response_id, position=position, item=item | {"id": own_id})
        rows.append(row)
    return rows
