"""Where a turn belongs: its session, what came before it, and what of its input is new."""

from dataclasses import dataclass, replace

from django.utils import timezone

from responses_app.models import Conversation, Response, Session
from responses_app.models.responses import Kind
from responses_app.protocol.errors import InvalidRequest, PreviousResponseNotFound
from responses_app.protocol.snapshot import Item
from responses_app.services.conversations import open_conversation
from responses_app.services.history.call_answers import Last, check_answers
from responses_app.services.history.chain_values import deleted_before
from responses_app.services.history.resent_history import Repeated, find_repeated
from responses_app.services.history.turns import newest_turn
from responses_app.services.history.window import check_window
from responses_app.services.lifecycle.admission import Admission
from responses_app.services.lifecycle.read_ahead import ReadAhead


@dataclass(frozen=True)
class Place:
    """Where a turn belongs, and what of its input is new."""

    session: Session
    items: list[Item]
    previous: Response | None = None
    conversation: Conversation | None = None
    has_server_history: bool = False
    repeated: Repeated | None = None
    skipped: tuple[str, ...] = ()  # deleted turns that its chain goes on without

    @property
    def known_items(self) -> int:
        return 0 if self.repeated is None else self.repeated.items


def find_place(admission: Admission, reads: ReadAhead) -> Place:
    """In the writer: the same few queries however long the history is.

    Raises NotRead where they are not enough.
    """
    place = _place(admission, reads)
    if place.previous is not None:
        _note_use(place.previous)
        place = replace(place, skipped=deleted_before(place.previous, reads))
    _check_session(admission, place)
    conversation_id = None if place.conversation is None else place.conversation.pk
    last = Last(place.previous, conversation_id, reads.get)
    check_answers(last, place.items, first_index=place.known_items)
    if admission.context_window and admission.echo.get("truncation") != "auto":
        check_window(admission, place, reads)
    return place


def _place(admission: Admission, reads: ReadAhead) -> Place:
    items = admission.items
    if admission.retry_of is not None:
        return _same_place(admission.retry_of, items)
    if admission.kind == Kind.COMPACTION:
        return _aside(admission, reads)
    if admission.previous_id is not None:
        previous = _previous(admission.owner_id, admission.previous_id)
        return _continued(admission, _chosen(admission) or previous.session, previous, reads)
    if admission.conversation is not None:
        conversation = open_conversation(admission.owner_id, admission.conversation)
        newest = newest_turn(conversation.session)
        return Place(conversation.session, items, newest, conversation, has_server_history=True)
    if admission.session_id is not None:
        session = Session.objects.opened(admission.owner_id, admission.session_id, admission.kind)
        return _continued(admission, session, newest_turn(session), reads)
    return _self_contained(admission, reads)


def _chosen(admission: Admission) -> Session | None:
    if not admission.is_session_chosen:
        return None
    return Session.objects.opened(admission.owner_id, admission.session_id, admission.kind)


def _continued(
    admission: Admission, session: Session, previous: Response | None, reads: ReadAhead
) -> Place:
    if admission.brings_history:
        return _self_contained(admission, reads, session)
    return Place(session, admission.items, previous, has_server_history=True)


def _aside(admission: Admission, reads: ReadAhead) -> Place:
    """Beside the conversation it looks at, whose turns neither wait for it nor go on from it."""
    session = Session.objects.opened(admission.owner_id, None, admission.kind)
    if admission.previous_id is None:
        place = _self_contained(admission, reads, session)
    else:
        previous = _previous(admission.owner_id, admission.previous_id)
        place = Place(session, admission.items, previous, has_server_history=True)
    parent = None if place.previous is None else place.previous.session
    Session.objects.filter(pk=session.pk).update(parent=parent, is_hidden=True)
    return place


def _same_place(response_id: str, items: list[Item]) -> Place:
    row = Response.objects.select_related("session", "previous").get(pk=response_id)
    repeated = None
    if row.previous is not None and row.is_history_resent:
        repeated = Repeated(row.previous, 0, row.is_history_spoken)
    return Place(row.session, items, row.previous, None, row.waits_for_turn, repeated)


def _self_contained(
    admission: Admission, reads: ReadAhead, session: Session | None = None
) -> Place:
    """A turn that brings its history: what of it we know already is not stored again."""
    items = admission.items
    repeated = find_repeated(admission.owner_id, admission.history_ends, reads)
    if repeated is not None:
        session = session or _session_after(repeated.last, admission)
        return Place(session, items[repeated.items :], repeated.last, repeated=repeated)
    opened = session or Session.objects.opened(
        admission.owner_id, admission.groups_with, admission.kind
    )
    return Place(opened, items)


def _session_after(repeated: Response, admission: Admission) -> Session:
    """The session goes on, unless it branches here or is led by a name, a chain or a conversation."""
    if admission.groups_with is not None:
        return Session.objects.opened(admission.owner_id, admission.groups_with, admission.kind)
    if not repeated.session.has_server_history and newest_turn(repeated.session) == repeated:
        return repeated.session
    branch = Session.objects.opened(admission.owner_id, None, admission.kind)
    Session.objects.filter(pk=branch.pk).update(parent=repeated.session)
    return branch


def _check_session(admission: Admission, place: Place) -> None:
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
    return previous


def _note_use(previous: Response) -> None:
    """What is continued is not evicted; the row stays locked until the turn behind it is stored."""
    if not Response.objects.filter(pk=previous.pk).update(accessed_at=timezone.now()):
        raise PreviousResponseNotFound(previous.pk)
