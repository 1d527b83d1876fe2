"""Fork: a session that continues a turn of another session, without a copy of its turns."""

from django.contrib.auth.models import User
from django.utils import timezone

from responses_app.database import database
from responses_app.models import Response, Session
from responses_app.protocol.errors import InvalidRequest, ResponseNotFound
from responses_app.protocol.ids import new_session_id
from responses_app.services.audit import record
from responses_app.services.history.placement import newest_turn
from responses_app.services.lookup import find_response
from responses_app.services.sessions import create_session

BRANCHED = "branched"


def fork_session(parent: Session, public_id: str, title: str, response_id: str | None) -> Session:
    """From the newest turn or from the named one, in whatever state; in the caller's transaction."""
    if response_id is None:
        point = newest_turn(parent)
    else:
        point = _turn(parent, response_id)
    child = create_session(
        parent.owner_id,
        public_id,
        title=title,
        source=parent.source,
        model=parent.model,
        instructions=parent.instructions,
        turn_policy=parent.turn_policy,
        parent=parent,
        fork_point=point,
    )
    Session.objects.filter(pk=parent.pk).update(ended_at=timezone.now(), end_reason=BRANCHED)
    return child


def _turn(session: Session, response_id: str) -> Response:
    found = None
    if response_id.isprintable():  # PostgreSQL refuses to look for a NUL
        turns = session.responses.filter(is_stored=True, deleted_at__isnull=True)
        found = turns.filter(pk=response_id).first()
    if found is None:
        raise ResponseNotFound(response_id)
    return found


def fork_after(response_id: str, owner_id: int, actor: User | None = None) -> Session:
    """For operators: after a turn that has ended, with an audit entry."""

    def store() -> Session:
        row = find_response(owner_id, response_id)
        if row.is_open:
            raise InvalidRequest(
                f"{response_id} has not ended; fork after a turn that has.", param="response_id"
            )
        fork = fork_session(row.session, new_session_id(), "", response_id)  # titles are unique
        record(actor, fork, f"Forked after {response_id}.")
        return fork

    return database.submit(store).result()
