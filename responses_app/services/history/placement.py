"""The placement of a turn: its session, the turn before it, and which of its input is new."""

from dataclasses import dataclass, replace

from django.utils import timezone

from responses_app.models import Conversation, Kind, Response, Session, TurnPolicy
from responses_app.protocol.errors import InvalidRequest, PreviousResponseNotFound, SessionBusy
from responses_app.protocol.items import Item
from responses_app.services.conversations import open_conversation
from responses_app.services.history.call_answers import PreviousTurn, check_answers
from responses_app.services.history.chain_values import deleted_before
from responses_app.services.history.resent_history import Repeated, find_repeated
from responses_app.services.history.sent_texts import notes_of_turn
from responses_app.services.history.window import check_window
from responses_app.services.lifecycle.admission import Admission
from responses_app.services.lifecycle.read_ahead import ReadAhead


@dataclass(frozen=True)
class Placement:
    """Where a turn belongs. ``items`` are those of its input that no earlier turn holds."""

    session: Session
    items: list[Item]
    previous: Response | None = None
    conversation: Conversation | None = None
    has_server_history: bool = False
    repeated: Repeated | None = None
    skipped: tuple[str, ...] = ()  # deleted turns of its chain, which the model does not see
    left_out: tuple[str, ...] = ()  # of the conversation, as it does not fit
    notes: dict[str, list[str]] | None = None  # those of the turn, where they were read


def find_placement(admission: Admission, reads: ReadAhead) -> Placement:
    """Runs in the writer, with the same few queries however long the history is.

    Raises NotRead where they are not enough.
    """
    placement = _placement(admission, reads)
    if placement.previous is not None:
        _note_access(placement.previous)
        placement = replace(placement, skipped=deleted_before(placement.previous, reads))
    _check_session(admission, placement)
    conversation_id = None
    if placement.conversation is not None:
        conversation_id = placement.conversation.pk
    previous = PreviousTurn(placement.previous, conversation_id, reads.get)
    known_items = 0
    if placement.repeated is not None:
        known_items = placement.repeated.items
    check_answers(previous, placement.items, known_items, admission.location)
    if not admission.limits.window:
        return placement
    placement = replace(placement, notes=notes_of_turn(admission, placement.session))
    return replace(placement, left_out=check_window(admission, placement, reads))


def _placement(admission: Admission, reads: ReadAhead) -> Placement:
    items = admission.items
    if admission.retry_of is not None:
        return _retry_placement(admission.retry_of, items)
    if admission.kind == Kind.COMPACTION:
        return _compaction_placement(admission, reads)
    if admission.previous_id is not None:
        previous = _previous(admission.owner_id, admission.previous_id)
        return _continued(admission, _chosen(admission) or previous.session, previous, reads)
    if admission.conversation is not None:
        conversation = open_conversation(admission.owner_id, admission.conversation)
        newest = newest_turn(conversation.session)
        return Placement(conversation.session, items, newest, conversation, has_server_history=True)
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
) -> Placement:
    if admission.brings_history:
        return _self_contained(admission, reads, session)
    return Placement(session, admission.items, previous, has_server_history=True)


def _compaction_placement(admission: Admission, reads: ReadAhead) -> Placement:
    """In a session of its own: no turn of the conversation waits for a compaction or continues it."""
    session = Session.objects.opened(admission.owner_id, None, admission.kind)
    if admission.previous_id is None:
        placement = _self_contained(admission, reads, session)
    else:
        previous = _previous(admission.owner_id, admission.previous_id)
        placement = Placement(session, admission.items, previous, has_server_history=True)
    parent = None
    if placement.previous is not None:
        parent = placement.previous.session
    Session.objects.filter(pk=session.pk).update(parent=parent, is_hidden=True)
    return placement


def _retry_placement(response_id: str, items: list[Item]) -> Placement:
    row = Response.objects.select_related("session", "previous").get(pk=response_id)
    repeated = None
    if row.previous is not None and row.is_history_resent:
        repeated = Repeated(row.previous, 0, is_chat_form=row.is_history_in_chat_form)
    return Placement(row.session, items, row.previous, None, row.waits_for_turn, repeated)


def _self_contained(
    admission: Admission, reads: ReadAhead, session: Session | None = None
) -> Placement:
    """A turn that brings its history: items that earlier turns hold are not stored again."""
    items = admission.items
    repeated = find_repeated(admission.owner_id, admission.history_ends, reads)
    if repeated is not None:
        session = session or _session_after(repeated.last, admission)
        return Placement(session, items[repeated.items :], repeated.last, repeated=repeated)
    opened = session or Session.objects.opened(
        admission.owner_id, admission.groups_with, admission.kind
    )
    return Placement(opened, items)


def _session_after(repeated: Response, admission: Admission) -> Session:
    """The session of the repeated turn, if that is its newest turn and clients supply its history."""
    if admission.groups_with is not None:
        return Session.objects.opened(admission.owner_id, admission.groups_with, admission.kind)
    if not repeated.session.has_server_history and newest_turn(repeated.session) == repeated:
        return repeated.session
    branch = Session.objects.opened(admission.owner_id, None, admission.kind)
    Session.objects.filter(pk=branch.pk).update(parent=repeated.session)
    return branch


def _check_session(admission: Admission, placement: Placement) -> None:
    if admission.session_id in (None, placement.session.public_id):
        return
    raise InvalidRequest(
        f"X-Hermes-Session-Id names the session {admission.session_id!r}, but the history that "
        f"you continue belongs to {placement.session.public_id!r}. Send one of the two.",
        param="X-Hermes-Session-Id",
    )


def _previous(owner_id: int, response_id: str) -> Response:
    visible = Response.objects.visible_to(owner_id).filter(deleted_at__isnull=True)
    previous = visible.select_related("session").filter(pk=response_id).first()
    if previous is None:
        raise PreviousResponseNotFound(response_id)
    return previous


def _note_access(previous: Response) -> None:
    """Keep the turn from eviction; its row stays locked until the turn after it is stored."""
    if not Response.objects.filter(pk=previous.pk).update(accessed_at=timezone.now()):
        raise PreviousResponseNotFound(previous.pk)


# -- turns of a session -----------------------------------------------------------------
@dataclass(frozen=True)
class Room:
    must_wait: bool
    interrupted: tuple[str, ...] = ()  # turns whose cancellation was requested


FREE = Room(must_wait=False)


def make_room(session: Session, previous: Response | None, policy: TurnPolicy | None) -> Room:
    """Apply the turn policy to running turns of the session, whose row the caller has locked."""
    busy = list(Response.objects.open().filter(session=session).values_list("pk", flat=True))
    policy = policy or TurnPolicy(session.turn_policy)
    if busy and policy is TurnPolicy.REJECT:
        raise SessionBusy(session.public_id)
    interrupted: list[str] = []
    if policy is TurnPolicy.INTERRUPT:
        for response_id in busy:
            if Response.objects.request_cancel(response_id):
                interrupted.append(response_id)
    waits_for_parent = previous is not None and previous.is_open
    return Room(bool(busy) or waits_for_parent, tuple(interrupted))


def newest_turn(session: Session) -> Response | None:
    """The turn that the session's next turn continues; in a fork without turns, the fork point."""
    stored = session.responses.filter(is_stored=True, deleted_at__isnull=True)
    return stored.order_by("-turn").first() or session.fork_point
