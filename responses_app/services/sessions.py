"""Sessions of an owner: find, create, change, delete."""

from functools import partial
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models.functions import Coalesce
from django.utils import timezone

from responses_app.database import database
from responses_app.dispatch import get_dispatcher
from responses_app.eventlog.store import event_store
from responses_app.models import ApprovalGrant, Conversation, Note, Response, Session
from responses_app.protocol.errors import (
    InvalidRequest,
    SessionExists,
    SessionNotFound,
    StorageUnavailable,
)
from responses_app.protocol.ids import new_session_id
from responses_app.services.conversations import SOURCE as CONVERSATIONS
from responses_app.services.lifecycle.delete import ERASED_AT_ONCE, erase_all

ERASED_IN_REQUEST = 200  # turns; a client would wait long for more


def find_session(owner_id: int, session_id: str) -> Session:
    """Another owner's session does not exist."""
    found = None
    if session_id.isprintable():  # PostgreSQL refuses to look for a NUL
        owned = Session.objects.of_owner(owner_id).select_related("parent", "fork_point")
        found = owned.filter(public_id=session_id).first()
    if found is None:
        raise SessionNotFound(session_id)
    return found


def create_session(owner_id: int, public_id: str, **fields: Any) -> Session:
    """In the caller's transaction."""
    title = fields.get("title", "")
    _refuse_taken(owner_id, public_id, title)
    try:
        with transaction.atomic():
            return Session.objects.create(owner_id=owner_id, public_id=public_id, **fields)
    except IntegrityError:  # another process has just created one
        _refuse_taken(owner_id, public_id, title)
        raise


def update_session(session: Session, **fields: Any) -> None:
    """In the caller's transaction."""
    rows = Session.objects.filter(pk=session.pk, deleted_at__isnull=True)
    _refuse_title(session.owner_id, fields.get("title", ""), session)
    try:
        with transaction.atomic():
            is_changed = rows.update(**fields)
    except IntegrityError:
        _refuse_title(session.owner_id, fields.get("title", ""), session)
        raise
    if not is_changed:
        raise SessionNotFound(session.public_id)


def delete_session(session: Session) -> None:
    """Hide the session from every reader at once, then erase its turns, a few at a time.

    All turns are marked as deleted: the sweep erases those that remain here, of a long session or
    after an outage or a crash.
    """
    turns = database.submit(lambda: _mark_deleted(session), _announce).result()
    for start in range(0, min(len(turns), ERASED_IN_REQUEST), ERASED_AT_ONCE):
        batch = turns[start : start + ERASED_AT_ONCE]
        try:
            database.submit(partial(erase_all, batch)).result()
        except StorageUnavailable:
            return


def _announce(response_ids: list[str]) -> None:
    for response_id in response_ids:
        get_dispatcher().cancel(response_id)
        event_store.forget(response_id)


def _mark_deleted(session: Session) -> list[str]:
    now = timezone.now()
    erased = {"title": "", "instructions": "", "end_reason": "", "key": ""}
    erased["public_id"] = new_session_id()  # a client may have put a person's name in it
    if not Session.objects.filter(pk=session.pk, deleted_at__isnull=True).update(
        deleted_at=now, **erased
    ):
        raise SessionNotFound(session.public_id)
    ApprovalGrant.objects.filter(session=session).delete()
    Note.objects.filter(session=session).delete()
    for conversation in Conversation.objects.filter(session=session):
        conversation.session = Session.objects.opened(session.owner_id, None, CONVERSATIONS)
        conversation.save(update_fields=["session"])
    turns = Response.objects.filter(session=session, deleted_at__isnull=True)
    response_ids = list(turns.values_list("pk", flat=True))
    Conversation.objects.filter(pk__in=turns.values("conversation_id")).note_removal()
    turns.update(deleted_at=now, is_log_merged=False)
    running = Response.objects.open().filter(session=session)
    running.update(cancel_requested_at=Coalesce("cancel_requested_at", now))
    return response_ids


def _refuse_taken(owner_id: int, public_id: str, title: str) -> None:
    if Session.objects.of_owner(owner_id).filter(public_id=public_id).exists():
        raise SessionExists(public_id)
    _refuse_title(owner_id, title)


def _refuse_title(owner_id: int, title: str, renamed: Session | None = None) -> None:
    titled = Session.objects.of_owner(owner_id).filter(title=title)
    if title and any(session != renamed for session in titled):
        raise InvalidRequest(
            f"You have another session titled {title!r}; titles are unique.",
            param="title",
            code="invalid_title",
        )
