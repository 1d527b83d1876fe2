"""Admit: from a valid request to a stored response, in one transaction."""

from dataclasses import replace

from responses_app.database import database
from responses_app.dispatch import Reservation, get_dispatcher
from responses_app.eventlog import Tail
from responses_app.eventlog.store import event_store
from responses_app.protocol.ids import new_response_id
from responses_app.protocol.status import OnDisconnect
from responses_app.services.history.item_references import resolve_references
from responses_app.services.history.resent_history import possible_ends
from responses_app.services.history.server_calls import has_bare_calls, with_outputs_of_ledger
from responses_app.services.idempotency import Joined, join_or_note
from responses_app.services.lifecycle.admission import Admission, Admitted
from responses_app.services.lifecycle.admission_rows import Stored, store_admission
from responses_app.services.lifecycle.cancel import leave
from responses_app.services.lifecycle.read_ahead import NotRead, ReadAhead


async def admit(admission: Admission) -> Admitted:
    """Store the request and its first events and announce the work, or join an earlier response."""
    response_id = new_response_id()
    tail = event_store.tails.of(response_id, is_volatile=not admission.is_stored)
    joined: list[Joined] = []
    reservation: Reservation | None = None
    try:
        prepared = await _prepared(admission)
        reservation = get_dispatcher().reserve(admission.owner_id, is_stored=admission.is_stored)
        outcome = await _write_admission(response_id, prepared, tail, joined, reservation)
        if isinstance(outcome, Stored):
            return outcome.admitted
        return await _admitted_by_joining(outcome, response_id)
    except BaseException:
        # The client gets an error: it must not stay among the clients of the response.
        for other in joined:
            if other.tail is not None:
                leave(other.row.pk, other.tail, response_id)
        raise
    finally:
        if reservation is not None:
            reservation.release()


async def _write_admission(
    response_id: str,
    admission: Admission,
    tail: Tail,
    joined: list[Joined],
    reservation: Reservation | None,
) -> Stored | Joined:
    """Appends to ``joined`` what was joined, also where the transaction fails after that."""
    reads = ReadAhead()

    def store_or_join() -> Stored | Joined:
        if admission.identity is not None:
            earlier = join_or_note(admission.owner_id, admission.identity, response_id)
            if earlier is not None:
                joined.append(earlier)
                return earlier
        admission.before_storing(response_id)
        return store_admission(response_id, admission, tail, reads, reservation)

    def announce(outcome: Stored | Joined) -> None:
        if isinstance(outcome, Stored):
            tail.publish(outcome.segment)
            for interrupted in outcome.admitted.interrupted:
                get_dispatcher().cancel(interrupted)
            if reservation is not None and outcome.claimed is not None:
                reservation.start(outcome.claimed)
            else:
                get_dispatcher().generate(response_id, admission.owner_id)

    while True:
        try:
            return await database.write(store_or_join, announce)
        except NotRead as missing:
            await database.read(reads.read, missing.question)


async def _admitted_by_joining(joined: Joined, reader: str) -> Admitted:
    row = joined.row
    return Admitted(
        row.pk,
        row.session.public_id,
        await joined.body(),
        OnDisconnect(row.on_disconnect),
        skipped_turns=(),
        left_out=(),
        interrupted=(),
        tail=joined.tail or event_store.tails.of(row.pk),
        reader=reader,
        is_replayed=True,
    )


async def _prepared(admission: Admission) -> Admission:
    """Prepare it in a reader thread: the larger the request, the longer it takes."""
    has_references = any(item["type"] == "item_reference" for item in admission.items)
    has_history = admission.may_repeat_history and len(admission.items) > 1
    if not has_references and not has_history and not has_bare_calls(admission.items):
        return admission
    return await database.read(prepare, admission)


def prepare(admission: Admission) -> Admission:
    """Complete the items and hash the history; neither needs a transaction."""
    items = resolve_references(admission.owner_id, admission.items, admission.location)
    items = with_outputs_of_ledger(admission.owner_id, items)
    ends: dict[str, int] = {}
    if admission.may_repeat_history:
        ends = possible_ends(items)
    return replace(admission, items=items, history_ends=ends)
