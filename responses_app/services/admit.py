"""Admit: from a valid request to a stored response, in one transaction."""

from dataclasses import dataclass, field, replace
from typing import Any

from django.utils import timezone

from responses_app import events
from responses_app.bodies import initial_body
from responses_app.dispatch import get_dispatcher
from responses_app.errors import InvalidRequest, PreviousResponseNotFound
from responses_app.eventlog import Numbering, Segment, Tail, event_store
from responses_app.eventlog.segments import insert_fenced
from responses_app.fold import Item, ResponseBody
from responses_app.ids import item_id, new_response_id
from responses_app.models import Conversation, InputItem, Response, Session
from responses_app.models.responses import Kind
from responses_app.services.answers import check_answers
from responses_app.services.conversations import items_of, open_conversation
from responses_app.services.history import deleted_before, turns_before
from responses_app.services.references import resolve_references
from responses_app.services.repeated import find_repeated
from responses_app.states import OnDisconnect, Status


@dataclass(frozen=True, kw_only=True)
class Admission:
    """What somebody asks for, checked and in our own terms."""

    owner_id: int
    model: str
    items: list[Item]
    echo: dict[str, Any] = field(default_factory=dict)
    request: dict[str, Any] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    kind: Kind = Kind.RESPONSES
    previous_id: str | None = None
    conversation: str | None = None
    session_id: str | None = None
    is_stored: bool = True
    is_background: bool = False

    @property
    def on_disconnect(self) -> OnDisconnect:
        return OnDisconnect.CONTINUE if self.is_stored else OnDisconnect.CANCEL


@dataclass(frozen=True)
class Admitted:
    response_id: str
    session_id: str
    body: ResponseBody
    on_disconnect: OnDisconnect
    skipped_turns: tuple[str, ...]
    segment: Segment
    tail: Tail


@dataclass(frozen=True)
class _Place:
    """Where a turn belongs, and what of its input is new."""

    session: Session
    items: list[Item]
    previous: Response | None = None
    conversation: Conversation | None = None
    has_server_history: bool = False
    is_history_resent: bool = False
    known_items: int = 0


async def admit(admission: Admission) -> Admitted:
    """Store the request and its first events, then say that there is work."""
    response_id = new_response_id()
    tail = event_store.tails.of(response_id, is_volatile=not admission.is_stored)

    def announce(admitted: Admitted) -> None:
        tail.publish(admitted.segment)
        get_dispatcher().generate(response_id)

    return await event_store.write(lambda: _store(response_id, admission, tail), announce)


def _store(response_id: str, admission: Admission, tail: Tail) -> Admitted:
    place = _find_place(admission)
    turn = Session.objects.next_turn(place.session.pk)
    is_waiting = place.has_server_history and Response.objects.open().filter(session=place.session).exists()
    status = Status.QUEUED if admission.is_background or is_waiting else Status.IN_PROGRESS
    now = timezone.now()
    row = Response.objects.create(
        id=response_id,
        owner_id=admission.owner_id,
        session=place.session,
        turn=turn,
        previous=place.previous,
        conversation=place.conversation,
        is_history_resent=place.is_history_resent,
        kind=admission.kind,
        status=status,
        model=admission.model,
        request=admission.request if admission.is_stored else {},
        ignored=list(admission.ignored),
        is_stored=admission.is_stored,
        is_background=admission.is_background,
        waits_for_turn=place.has_server_history,
        on_disconnect=admission.on_disconnect,
        lease_owner="" if admission.is_stored else event_store.process_id,
        created_at=now,
        accessed_at=now,
    )
    body = initial_body(
        response_id, model=row.model, created_at=int(now.timestamp()), status=status, echo=_echo(admission, place)
    )
    segment = _opening(response_id, body)
    if admission.is_stored:
        InputItem.objects.bulk_create(_input_rows(response_id, place.items))
        insert_fenced([segment])
    else:
        tail.brief = replace(admission, items=place.items)
    skipped = tuple(deleted_before(place.previous))
    return Admitted(response_id, place.session.public_id, body, admission.on_disconnect, skipped, segment, tail)


def _opening(response_id: str, body: ResponseBody) -> Segment:
    second = events.QUEUED if body["status"] == Status.QUEUED else events.IN_PROGRESS
    opening = [{"type": events.CREATED, "response": body}, {"type": second, "response": body}]
    return Numbering(response_id, attempt=0).seal(opening)


def _echo(admission: Admission, place: _Place) -> dict[str, Any]:
    if place.conversation is None:
        return admission.echo
    return {**admission.echo, "conversation": {"id": place.conversation.pk}}


def _find_place(admission: Admission) -> _Place:
    items = resolve_references(admission.owner_id, admission.items)
    if admission.previous_id is not None:
        previous = _previous(admission.owner_id, admission.previous_id)
        place = _Place(previous.session, items, previous, has_server_history=True)
    elif admission.conversation is not None:
        conversation = open_conversation(admission.owner_id, admission.conversation)
        newest = _newest_turn(conversation.session)
        place = _Place(conversation.session, items, newest, conversation, has_server_history=True)
    elif admission.session_id is not None:
        session = Session.objects.opened(admission.owner_id, admission.session_id, admission.kind)
        place = _Place(session, items, _newest_turn(session), has_server_history=True)
    else:
        place = _self_contained(admission, items)
    _check_session(admission, place)
    _check_answers(place)
    return place


def _check_answers(place: _Place) -> None:
    def older() -> list[Item]:
        if place.conversation is not None:
            return items_of(place.conversation.pk)
        turns = turns_before(None if place.previous is None else place.previous.pk)
        return [item for turn in turns for item in (*turn.input, *turn.output)]

    check_answers(place.previous, older, place.items, first_index=place.known_items)


def _self_contained(admission: Admission, items: list[Item]) -> _Place:
    """A turn that brings its history: what of it we know already is not stored again."""
    if admission.is_stored:
        repeated, known = find_repeated(admission.owner_id, items)
        if repeated is not None:
            return _Place(
                _session_after(repeated, admission), items[known:], repeated, known_items=known, is_history_resent=True
            )
    return _Place(Session.objects.opened(admission.owner_id, None, admission.kind), items)


def _session_after(repeated: Response, admission: Admission) -> Session:
    """The session goes on, unless it branches here or is led by a name, a chain or a conversation."""
    turns = repeated.session.responses
    if _newest_turn(repeated.session) == repeated and not turns.filter(waits_for_turn=True).exists():
        return repeated.session
    branch = Session.objects.opened(admission.owner_id, None, admission.kind)
    Session.objects.filter(pk=branch.pk).update(parent=repeated.session)
    return branch


def _check_session(admission: Admission, place: _Place) -> None:
    if admission.session_id in (None, place.session.public_id):
        return
    raise InvalidRequest(
        f"X-Hermes-Session-Id names the session {admission.session_id!r}, but the history you continue "
        f"belongs to {place.session.public_id!r}. Send one of the two.",
        param="X-Hermes-Session-Id",
    )


def _previous(owner_id: int, response_id: str) -> Response:
    visible = Response.objects.visible_to(owner_id).filter(deleted_at__isnull=True)
    previous = visible.select_related("session").filter(pk=response_id).first()
    if previous is None:
        raise PreviousResponseNotFound(response_id)
    Response.objects.filter(pk=response_id).update(accessed_at=timezone.now())
    return previous


def _newest_turn(session: Session) -> Response | None:
    stored = session.responses.filter(is_stored=True, deleted_at__isnull=True)
    return stored.order_by("-turn").first()


def _input_rows(response_id: str, items: list[Item]) -> list[InputItem]:
    return [
        InputItem(
            response_id=response_id,
            position=position,
            item={**item, "id": item_id(response_id, item["type"], position, is_input=True)},
        )
        for position, item in enumerate(items)
    ]
