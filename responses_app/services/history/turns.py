"""Turns of a session: which is the newest, and what one does that comes while another runs."""

from dataclasses import dataclass

from responses_app.models import Response, Session
from responses_app.models.sessions import TurnPolicy
from responses_app.protocol.errors import SessionBusy


@dataclass(frozen=True)
class Room:
    must_wait: bool
    interrupted: tuple[str, ...] = ()


FREE = Room(must_wait=False)


def make_room(session: Session, previous: Response | None, policy: TurnPolicy | None) -> Room:
    """Wait, refuse or stop what runs, in the caller's transaction; the session's row is locked."""
    busy = list(Response.objects.open().filter(session=session).values_list("pk", flat=True))
    policy = policy or TurnPolicy(session.turn_policy)
    if busy and policy is TurnPolicy.REJECT:
        raise SessionBusy(session.public_id)
    interrupted: list[str] = []
    if policy is TurnPolicy.INTERRUPT:
        interrupted = [
            response_id for response_id in busy if Response.objects.request_cancel(response_id)
        ]
    waits_for_parent = previous is not None and previous.is_open
    return Room(bool(busy) or waits_for_parent, tuple(interrupted))


def newest_turn(session: Session) -> Response | None:
    """What the session's next turn goes on from; a fork without turns goes on from its parent's."""
    stored = session.responses.filter(is_stored=True, deleted_at__isnull=True)
    return stored.order_by("-turn").first() or session.fork_point
