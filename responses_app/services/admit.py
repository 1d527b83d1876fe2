"""Admit: from a valid request to a stored response, in one transaction."""

from dataclasses import dataclass, field
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
from responses_app.models import InputItem, Response, Session
from responses_app.models.responses import Kind
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
    """Where a turn belongs."""

    session: Session
    previous: Response | None
    has_server_history: bool


async def admit(admission: Admission) -> Admitted:
    """Store the request and its first events, then say that there is work."""
    response_id = new_response_id()
    tail = event_store.tails.of(response_id, is_volatile=not admission.is_stored)
    tail.brief = admission

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
        response_id, model=row.model, created_at=int(now.timestamp()), status=status, echo=admission.echo
    )
    segment = _opening(response_id, body)
    if admission.is_stored:
        InputItem.objects.bulk_create(_input_rows(response_id, admission.items))
        insert_fenced([segment])
    skipped = tuple(_deleted_turns(place.previous))
    return Admitted(response_id, place.session.public_id, body, admission.on_disconnect, skipped, segment, tail)


def _opening(response_id: str, body: ResponseBody) -> Segment:
    second = events.QUEUED if body["status"] == Status.QUEUED else events.IN_PROGRESS
    opening = [{"type": events.CREATED, "response": body}, {"type": second, "response": body}]
    return Numbering(response_id, attempt=0).seal(opening)


def _find_place(admission: Admission) -> _Place:
    if admission.previous_id is not None:
        previous = _previous(admission.owner_id, admission.previous_id)
        if admission.session_id not in (None, previous.session.public_id):
            raise InvalidRequest(
                f"X-Hermes-Session-Id names the session {admission.session_id!r}, but previous_response_id "
                f"belongs to {previous.session.public_id!r}. Send one of the two.",
                param="X-Hermes-Session-Id",
            )
        return _Place(previous.session, previous, has_server_history=True)
    session = Session.objects.opened(admission.owner_id, admission.session_id, admission.kind)
    if admission.session_id is None:
        return _Place(session, None, has_server_history=False)
    return _Place(session, _newest_turn(session), has_server_history=True)


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


def _deleted_turns(previous: Response | None) -> list[str]:
    """Turns of this chain that were deleted: the model goes on without them."""
    if previous is None:
        return []
    turns = previous.session.responses.filter(is_stored=True)
    deleted = set(turns.filter(deleted_at__isnull=False).values_list("pk", flat=True))
    if not deleted:
        return []
    links = dict(turns.values_list("pk", "previous_id"))
    chain: list[str] = []
    at: str | None = previous.pk
    while at is not None and len(chain) < len(links):
        chain.append(at)
        at = links.get(at)
    return [turn for turn in chain if turn in deleted]


def _input_rows(response_id: str, items: list[Item]) -> list[InputItem]:
    return [
        InputItem(
            response_id=response_id,
            position=position,
            item={"id": item_id(response_id, item["type"], position, is_input=True), **item},
        )
        for position, item in enumerate(items)
    ]
