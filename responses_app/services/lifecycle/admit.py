"""Admit: from a valid request to a stored response, in one transaction."""

from dataclasses import asdict, dataclass, replace
from typing import Any

from django.utils import timezone

from responses_app.database import database
from responses_app.dispatch import get_dispatcher
from responses_app.eventlog import Numbering, Segment, Tail
from responses_app.eventlog.inserting import insert_fenced
from responses_app.eventlog.segments import stamped
from responses_app.eventlog.store import event_store
from responses_app.models import InputItem, Response, Session
from responses_app.models.responses import Kind
from responses_app.protocol import events
from responses_app.protocol.ids import item_id, new_response_id
from responses_app.protocol.items import Item
from responses_app.protocol.response_object import ResponseBody, initial_body
from responses_app.protocol.status import OnDisconnect, Status
from responses_app.services.history.chain_values import Carried, first_values
from responses_app.services.history.item_references import resolve_references
from responses_app.services.history.placement import FREE, Placement, find_placement, make_room
from responses_app.services.history.resent_history import possible_ends
from responses_app.services.history.transcript import count_messages
from responses_app.services.idempotency import Joined, join_or_note
from responses_app.services.lifecycle.admission import Admission
from responses_app.services.lifecycle.cancel import leave
from responses_app.services.lifecycle.claim import PROCESS_ID
from responses_app.services.lifecycle.read_ahead import NotRead, ReadAhead


@dataclass(frozen=True)
class Admitted:
    response_id: str
    session_id: str
    body: ResponseBody
    on_disconnect: OnDisconnect
    skipped_turns: tuple[str, ...]
    interrupted: tuple[str, ...]
    tail: Tail
    reader: str  # the name of this request among the tail's clients
    is_replayed: bool = False  # an earlier request made it


@dataclass(frozen=True)
class Stored:
    admitted: Admitted
    segment: Segment


async def admit(admission: Admission) -> Admitted:
    """Store the request and its first events, then say that there is work; or join the response it has already."""
    response_id = new_response_id()
    tail = event_store.tails.of(response_id, is_volatile=not admission.is_stored)
    joined: list[Joined] = []
    try:
        outcome = await _write_admission(response_id, await _prepared(admission), tail, joined)
        if isinstance(outcome, Stored):
            return outcome.admitted
        return await _admitted_by_joining(outcome, response_id)
    except BaseException:
        # The client gets an error: it must not stay among those that the response runs for.
        for other in joined:
            if other.tail is not None:
                leave(other.row.pk, other.tail, response_id)
        raise


async def _write_admission(
    response_id: str, admission: Admission, tail: Tail, joined: list[Joined]
) -> Stored | Joined:
    """``joined`` gets what was joined as soon as it is, also where the transaction then fails."""
    reads = ReadAhead()

    def store_or_join() -> Stored | Joined:
        outcome = _store_or_join(response_id, admission, tail, reads)
        if isinstance(outcome, Joined):
            joined.append(outcome)
        return outcome

    def announce(outcome: Stored | Joined) -> None:
        if isinstance(outcome, Stored):
            tail.publish(outcome.segment)
            for interrupted in outcome.admitted.interrupted:
                get_dispatcher().cancel(interrupted)
            get_dispatcher().generate(response_id, admission.owner_id)

    while True:
        try:
            return await database.write(store_or_join, announce)
        except NotRead as missing:
            await database.read(reads.read, missing.question)


async def _admitted_by_joining(joined: Joined, reader: str) -> Admitted:
    row, body = joined.row, await joined.body()
    tail = joined.tail or event_store.tails.of(row.pk)
    on_disconnect = OnDisconnect(row.on_disconnect)
    return Admitted(
        row.pk, row.session.public_id, body, on_disconnect, (), (), tail, reader, is_replayed=True
    )


async def _prepared(admission: Admission) -> Admission:
    """With references resolved and history hashed: that takes longer the larger the request is."""
    has_references = any(item["type"] == "item_reference" for item in admission.items)
    has_history = admission.may_repeat_history and len(admission.items) > 1
    if not has_references and not has_history:
        return admission
    return await database.read(prepare, admission)


def prepare(admission: Admission) -> Admission:
    """What needs no transaction."""
    items = resolve_references(admission.owner_id, admission.items)
    ends = possible_ends(items) if admission.may_repeat_history else {}
    return replace(admission, items=items, history_ends=ends)


def _store_or_join(
    response_id: str,
    admission: Admission,
    tail: Tail,
    reads: ReadAhead,
) -> Stored | Joined:
    if admission.identity is not None:
        joined = join_or_note(admission.owner_id, admission.identity, response_id)
        if joined is not None:
            return joined
    return store_admission(response_id, admission, tail, reads)


def store_admission(response_id: str, admission: Admission, tail: Tail, reads: ReadAhead) -> Stored:
    """In the writer: everything that has to be stored before a client can know of the response."""
    placement = find_placement(admission, reads)
    session_key = (admission.session_key or "") if admission.is_stored else ""
    turn = Session.objects.next_turn(
        placement.session.pk, session_key, has_server_history=placement.has_server_history
    )
    room = (
        make_room(placement.session, placement.previous, admission.turn_policy)
        if placement.has_server_history
        else FREE
    )
    status = Status.QUEUED if admission.is_background or room.must_wait else Status.IN_PROGRESS
    now = timezone.now()
    row = Response.objects.create(
        id=response_id,
        owner_id=admission.owner_id,
        session=placement.session,
        turn=turn,
        session_key=session_key,
        previous=placement.previous,
        conversation=placement.conversation,
        is_history_resent=placement.repeated is not None,
        is_history_spoken=placement.repeated is not None and placement.repeated.is_chat_form,
        kind=admission.kind,
        message_count=count_messages(placement.items) if admission.is_stored else 0,
        **_running_values(response_id, admission, placement),
        tool_items=admission.tool_items,
        status=status,
        model=admission.model,
        requested_by=admission.requested_by,
        request=admission.request if admission.is_stored else {},
        ignored=list(admission.ignored) if admission.is_stored else [],
        is_stored=admission.is_stored,
        is_background=admission.is_background,
        waits_for_turn=placement.has_server_history,
        on_disconnect=admission.on_disconnect,
        lease_owner="" if admission.is_stored else PROCESS_ID,
        created_at=now,
        accessed_at=now,
    )
    body = initial_body(
        response_id,
        model=row.model,
        created_at=int(now.timestamp()),
        status=status,
        echo=_echo(admission, placement),
    )
    segment = _opening(response_id, body)
    if admission.is_stored:
        InputItem.objects.bulk_create(_input_rows(response_id, placement.items))
        insert_fenced([segment])
    else:
        tail.brief = replace(admission, items=placement.items)
    tail.clients.add(response_id)
    session_id, leaves = placement.session.public_id, admission.on_disconnect
    admitted = Admitted(
        response_id,
        session_id,
        body,
        leaves,
        placement.skipped,
        room.interrupted,
        tail,
        reader=response_id,
    )
    return Stored(admitted, segment)


def _running_values(response_id: str, admission: Admission, placement: Placement) -> dict[str, Any]:
    """Nothing goes on from a compaction or from what is not stored: neither is part of a chain."""
    if admission.kind == Kind.COMPACTION or not admission.is_stored:
        return {"chain_root": response_id}
    previous = placement.previous
    before = Carried()
    if previous is not None:
        before = Carried(previous.context_tokens, previous.compaction_at)
    return first_values(
        response_id,
        previous,
        has_instructions=admission.request.get("instructions") is not None,
        brings_history=placement.repeated is not None,
    ) | asdict(before.behind(admission.owner_id, response_id, placement.items))


def _opening(response_id: str, body: ResponseBody) -> Segment:
    second = events.QUEUED if body["status"] == Status.QUEUED else events.IN_PROGRESS
    opening = [{"type": events.CREATED, "response": body}, {"type": second, "response": body}]
    return stamped(Numbering(response_id, attempt=0).seal(opening))


def _echo(admission: Admission, placement: Placement) -> dict[str, Any]:
    if placement.conversation is None:
        return admission.echo
    return {**admission.echo, "conversation": {"id": placement.conversation.pk}}


def _input_rows(response_id: str, items: list[Item]) -> list[InputItem]:
    return [
        InputItem(
            response_id=response_id,
            position=position,
            item={**item, "id": item_id(response_id, item["type"], position, is_input=True)},
        )
        for position, item in enumerate(items)
    ]
