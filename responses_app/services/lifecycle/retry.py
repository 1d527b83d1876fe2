"""Retry: the same request once more, as a new response behind the same history."""

from django.contrib.auth.models import User

from responses_app.database import database
from responses_app.dispatch import get_dispatcher
from responses_app.eventlog.store import event_store
from responses_app.models import Response
from responses_app.protocol.errors import InvalidRequest
from responses_app.protocol.ids import new_response_id
from responses_app.services.audit import record
from responses_app.services.lifecycle.admission_rows import Stored, store_admission
from responses_app.services.lifecycle.read_ahead import NotRead, ReadAhead
from responses_app.services.lifecycle.stored_admission import retried_admission
from responses_app.services.lookup import owner_of


def retry_response(response_id: str, actor: User | None = None) -> str:
    """The id of the new response; the old one stays as it is."""
    new_id = new_response_id()
    tail = event_store.tails.of(new_id)
    owner_id = owner_of(response_id)
    reads = ReadAhead()

    def store() -> Stored:
        row = Response.objects.get(pk=response_id)
        _check(row)
        stored = store_admission(new_id, retried_admission(row), tail, reads)
        record(actor, row, f"Tried again as {new_id}.")
        return stored

    def announce(stored: Stored) -> None:
        tail.publish(stored.segment)
        get_dispatcher().generate(new_id, owner_id)

    while True:
        try:
            return database.submit(store, announce).result().admitted.response_id
        except NotRead as missing:
            reads.read(missing.question)


def _check(row: Response) -> None:
    if row.is_open:
        raise InvalidRequest(f"{row.pk} still runs; cancel it first.")
    if row.deleted_at is not None or not row.is_stored:
        raise InvalidRequest(f"The request of {row.pk} is not stored.")
    if row.conversation_id is not None:
        raise InvalidRequest(f"{row.pk} is part of its conversation by now; send it there again.")
