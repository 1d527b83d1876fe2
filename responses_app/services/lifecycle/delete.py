"""Delete: the content is erased, and a tombstone stays, so that chains show the missing turn."""

from collections.abc import Sequence

from django.contrib.auth.models import User
from django.utils import timezone

from responses_app.database import database
from responses_app.dispatch import get_dispatcher
from responses_app.eventlog.store import event_store
from responses_app.models import (
    Conversation,
    EventSegment,
    InputItem,
    OutboxMessage,
    Response,
    ToolEvent,
)
from responses_app.services.audit import record
from responses_app.services.idempotency import forget_content
from responses_app.services.search.index import forget_words

ERASED_AT_ONCE = 20  # in one transaction: the writes of all streams wait for it


def delete_response(response_id: str, actor: User | None = None) -> None:
    """Hidden from every reader at once; a running response is cancelled and erased when it ends."""

    def mark_and_erase() -> None:
        # In the order of admission: the conversation is locked before its newest turn.
        Conversation.objects.filter(responses=response_id).note_removal()
        Response.objects.filter(pk=response_id).update(deleted_at=timezone.now())
        record(actor, Response(pk=response_id), "Content deleted.")
        if not Response.objects.request_cancel(response_id):
            erase(response_id)

    def announce(_: None) -> None:
        get_dispatcher().cancel(response_id)
        event_store.forget(response_id)

    database.submit(mark_and_erase, announce).result()


def erase_all(response_ids: Sequence[str]) -> None:
    """In the caller's transaction; a running response is erased when it ends."""
    for response_id in response_ids:
        erase(response_id)


def erase(response_id: str) -> None:
    """Remove all content of an ended response, in the caller's transaction."""
    if Response.objects.open().filter(pk=response_id).exists():
        return
    EventSegment.objects.filter(response_id=response_id).delete()
    InputItem.objects.filter(response_id=response_id).delete()
    ToolEvent.objects.filter(response_id=response_id).erase()
    OutboxMessage.objects.erase(response_id)
    forget_content(response_id)
    forget_words(response_id)
    Response.objects.filter(pk=response_id).update(
        request={},
        ignored=[],
        output=None,
        provider_state=None,
        error=None,
        error_code=None,
        protocol_deviations=[],
        session_key="",
        context_hash="",
        chat_context_hash="",
        message_count=0,
        is_log_merged=True,
    )
