"""Where a turn belongs: its session, what came before it, and what of its input is new."""

from dataclasses import dataclass

from django.utils import timezone

from responses_app.errors import InvalidRequest, PreviousResponseNotFound
from responses_app.fold import Item
from responses_app.models import Conversation, Response, Session
from responses_app.models.responses import Kind
from responses_app.services.admission import Admission
from responses_app.services.answers import check_answers
from responses_app.services.compactions import standing_context
from responses_app.services.conversations import items_of, open_conversation
from responses_app.services.history import turns_before
from responses_app.services.references import resolve_references
from responses_app.services.repeated import Repeated, find_repeated
from responses_app.services.turns import newest_turn
from responses_app.tokens import estimate_tokens


@dataclass(frozen=True)
class Place:
    """Where a turn belongs, and what of its input is new."""

    session: Session
    items: list[Item]
    previous: Response | None = None
    conversation: Conversation | None = None
    has_server_history: bool = False
    repeated: Repeated | None = None

    @property
    def known_items(self) -> int:
        return 0 if self.repeated is None else self.repeated.items


def find_place(admission: Admission) -> Place:
    items = resolve_references(admission.owner_id, admission.items)
    if admission.retry_of is not None:
        place = _same_place(admission.retry_of, items)
    elif admission.kind == Kind.COMPACTION:
        place = _aside(admission, items)
    elif admission.previous_id is not None:
        previous = _previous(admission.owner_id, admission.previous_id)
        place = _continued(admission, items, _chosen(admission) or previous.session, previous)
    elif admission.conversation is not None:
        conversation = open_conversation(admission.owner_id, admission.conversation)
        newest = newest_turn(conversation.session)
        place = Place(conversation.session, items, newest, conversation, has_server_history=True)
    elif admission.session_id is not None:
        session = Session.objects.opened(admission.owner_id, admission.session_id, admission.kind)
        place = _continued(admission, items, session, newest_turn(session))
    else:
        place = _self_contained(admission, items)
    if place.previous is not None:
        _note_use(place.previous)
    _check_session(admission, place)
    check_answers(place.previous, lambda: _older(place), place.items, first_index=place.known_items)
    _check_window(admission, place)
    return place


def _chosen(admission: Admission) -> Session | None:
    if not admission.is_session_chosen:
        return None
    return Session.objects.opened(admission.owner_id, admission.session_id, admission.kind)


def _continued(admission: Admission, items: list[Item], session: Session, previous: Response | None) -> Place:
    if admission.brings_history:
        return _self_contained(admission, items, session)
    return Place(session, items, previous, has_server_history=True)


def _aside(admission: Admission, items: list[Item]) -> Place:
    """Beside the conversation it looks at, whose turns neither wait for it nor go on from it."""
    session = Session.objects.opened(admission.owner_id, None, admission.kind)
    if admission.previous_id is None:
        place = _self_contained(admission, items, session)
    else:
        place = Place(session, items, _previous(admission.owner_id, admission.previous_id), has_server_history=True)
    parent = None if place.previous is None else place.previous.session
    Session.objects.filter(pk=session.pk).update(parent=parent, is_hidden=True)
    return place


def _same_place(response_id: str, items: list[Item]) -> Place:
    row = Response.objects.select_related("session", "previous").get(pk=response_id)
    repeated = None
    if row.previous is not None and row.is_history_resent:
        repeated = Repeated(row.previous, 0, row.is_history_spoken)
    return Place(row.session, items, row.previous, None, row.waits_for_turn, repeated)


def _older(place: Place) -> list[Item]:
    if place.conversation is not None:
        return items_of(place.conversation.pk)
    turns = turns_before(None if place.previous is None else place.previous.pk)
    return [item for turn in turns for item in (*turn.input, *turn.output)]


def _check_window(admission: Admission, place: Place) -> None:
    """Where the window is known, a request that can't fit is refused before it costs anything."""
    if not admission.context_window or admission.echo.get("truncation") == "auto":
        return
    echo = admission.echo
    shown = standing_context(admission.owner_id, _older(place), place.items)
    tokens = estimate_tokens(
        [item for part in shown for item in part], echo.get("instructions"), echo.get("tools") or []
    )
    if tokens > admission.context_window:
        raise InvalidRequest(
            f"The input has about {tokens} tokens, and this model takes {admission.context_window}. "
            "Shorten it, or send truncation: auto to drop the oldest turns.",
            param="input",
            code="context_length_exceeded",
        )


def _self_contained(admission: Admission, items: list[Item], session: Session | None = None) -> Place:
    """A turn that brings its history: what of it we know already is not stored again."""
    if admission.is_stored:
        repeated = find_repeated(admission.owner_id, items)
        if repeated is not None:
            session = session or _session_after(repeated.last, admission)
            return Place(session, items[repeated.items :], repeated.last, repeated=repeated)
    opened = session or Session.objects.opened(admission.owner_id, admission.groups_with, admission.kind)
    return Place(opened, items)


def _session_after(repeated: Response, admission: Admission) -> Session:
    """The session goes on, unless it branches here or is led by a name, a chain or a conversation."""
    if admission.groups_with is not None:
        return Session.objects.opened(admission.owner_id, admission.groups_with, admission.kind)
    turns = repeated.session.responses
    if newest_turn(repeated.session) == repeated and not turns.filter(waits_for_turn=True).exists():
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
