"""A history read from its end gives what reading all of it gave."""

import random

import pytest
from django.db import connection, transaction
from django.utils import timezone

from responses_app.eventlog.store import event_store
from responses_app.models import InputItem, Response
from responses_app.protocol.context_limits import ContextLimits
from responses_app.protocol.ids import new_response_id
from responses_app.protocol.items import KEPT, CompactedContext, Item
from responses_app.protocol.token_estimate import estimate_tokens
from responses_app.protocol.truncation import newest_that_fit
from responses_app.services.history.chain import ChainHistory, ids_before, turns_before
from responses_app.services.history.chain_values import ContextSize, inherited_instructions
from responses_app.services.history.compaction import expand, seal_compaction
from responses_app.services.history.context import count_context, read_context
from responses_app.services.lifecycle.admission import Admission
from responses_app.services.lifecycle.admission_rows import store_admission
from responses_app.services.lifecycle.read_ahead import NotRead, ReadAhead
from tests.support.long_chains import Chain, message, store_chain

pytestmark = pytest.mark.django_db


def compaction(owner_id: int, text: str, *, replaces_all: bool) -> Item:
    summary = message("user", text)
    summary["compacted"] = KEPT
    compacted = CompactedContext([summary], replaces_all=replaces_all)
    return {"type": "compaction", "encrypted_content": seal_compaction(owner_id, compacted)}


def mixed_chain(name: str, chance: random.Random) -> Chain:
    """Long and short texts, compactions of both kinds, deleted turns, and rows that hold no count."""
    chain = store_chain(name, 40)
    carried = ContextSize()
    for row in Response.objects.filter(pk__in=chain.ids).order_by("turn"):
        row.output = [message("assistant", "word " * chance.randrange(60))]
        if chance.random() < 0.15:
            replaces_all = chance.random() < 0.5
            row.output.append(compaction(chain.owner_id, name, replaces_all=replaces_all))
        brought = list(InputItem.objects.filter(response=row).values_list("item", flat=True))
        carried = carried.after(chain.owner_id, row.pk, [*brought, *row.output])
        if chance.random() < 0.1:
            carried = ContextSize(None, "")
        row.context_tokens, row.compaction_at = carried.context_tokens, carried.compaction_at
        row.deleted_at = timezone.now() if chance.random() < 0.1 else None
        row.save()
    return chain


@pytest.mark.parametrize("seed", range(25))
def test_what_is_read_from_the_end_is_what_a_whole_reading_keeps(seed: int) -> None:
    chance = random.Random(seed)
    chain = mixed_chain("mixed", chance)
    whole = [item for turn in turns_before(chain.ids[-1]) for item in turn.items]
    shown = expand(chain.owner_id, whole).items
    assert read_context(chain.owner_id, ChainHistory(chain.ids[-1])).items == shown
    for _ in range(10):
        room = chance.randrange(estimate_tokens(shown, None, []) + 20)
        kept = newest_that_fit(shown, room)
        found = read_context(chain.owner_id, ChainHistory(chain.ids[-1]), room)
        assert (found.items, found.is_cut) == (kept, len(kept) < len(shown))


def lengthen(chain: Chain, turns: int) -> str:
    """Copies of the only turn behind it, made by SQLite itself; the id of the last."""
    named = {
        "id": "printf('resp_%032d', number)",
        "turn": "number",
        "previous_id": f"iif(number = 2, '{chain.ids[0]}', printf('resp_%032d', number - 1))",
    }
    columns = [str(field.column) for field in Response._meta.concrete_fields]
    copied = ", ".join(named.get(column, column) for column in columns)
    numbers = "WITH RECURSIVE numbers(number) AS (SELECT 2 UNION ALL SELECT number + 1 FROM numbers"
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO responses_app_response ({', '.join(columns)}) "
            f"{numbers} WHERE number < {turns}) SELECT {copied} FROM responses_app_response, numbers"
        )
    return f"resp_{turns:032}"


def test_a_chain_is_read_to_its_beginning_however_long_it_is() -> None:
    chain = store_chain("endless", 1)
    last = lengthen(chain, 10_100)
    ids = ids_before(last)
    assert (len(ids), ids[0], ids[-1]) == (10_100, chain.ids[0], last)


@pytest.fixture
def chain() -> Chain:
    return store_chain("deleted", 30)


def delete(response_id: str) -> None:
    Response.objects.filter(pk=response_id).update(deleted_at=timezone.now(), request={}, output=None)
    InputItem.objects.filter(response_id=response_id).delete()


def admitted(chain: Chain, reads: ReadAhead, previous_id: str, window: int = 0) -> Response:
    asked = Admission(
        owner_id=chain.owner_id,
        model="m",
        items=[message("user", "next")],
        previous_id=previous_id,
        limits=ContextLimits(window),
    )
    response_id = new_response_id()
    with transaction.atomic():
        stored = store_admission(response_id, asked, event_store.tails.of(response_id), reads)
    row = Response.objects.get(pk=response_id)
    row.skipped = stored.admitted.skipped_turns  # type: ignore[attr-defined]
    return row


def test_deleted_turns_are_looked_for_outside_the_transaction(chain: Chain) -> None:
    delete(chain.ids[3])
    reads = ReadAhead()
    with pytest.raises(NotRead) as missing:
        admitted(chain, reads, chain.ids[-1])
    assert Response.objects.count() == 30
    reads.read(missing.value.question)
    assert admitted(chain, reads, chain.ids[-1]).skipped == (chain.ids[3],)  # type: ignore[attr-defined]


def test_a_deleted_turn_of_another_branch_is_not_reported(chain: Chain) -> None:
    branch = admitted(chain, ReadAhead(), chain.ids[5])
    delete(branch.pk)
    reads = ReadAhead()
    with pytest.raises(NotRead) as missing:
        admitted(chain, reads, chain.ids[-1])
    reads.read(missing.value.question)
    assert admitted(chain, reads, chain.ids[-1]).skipped == ()  # type: ignore[attr-defined]
    assert admitted(chain, ReadAhead(), chain.ids[5]).skipped == ()  # type: ignore[attr-defined]


def test_a_chain_without_a_count_is_counted_once(chain: Chain) -> None:
    tokens = Response.objects.get(pk=chain.ids[-1]).context_tokens
    Response.objects.update(context_tokens=None)
    reads = ReadAhead()
    with pytest.raises(NotRead) as missing:
        admitted(chain, reads, chain.ids[-1], window=10**6)
    reads.read(missing.value.question)
    row = admitted(chain, reads, chain.ids[-1], window=10**6)
    assert Response.objects.get(pk=chain.ids[-1]).context_tokens == tokens
    assert tokens is not None
    assert row.context_tokens == tokens + estimate_tokens([message("user", "next")], None, [])
    admitted(chain, ReadAhead(), chain.ids[-1], window=10**6)


def test_deleted_turns_are_not_counted(chain: Chain) -> None:
    delete(chain.ids[4])
    left = count_context(chain.owner_id, ChainHistory(chain.ids[-1]))
    new = estimate_tokens([message("user", "next")], None, [])
    reads = ReadAhead()
    for _ in range(2):
        with pytest.raises(NotRead) as missing:
            admitted(chain, reads, chain.ids[-1], window=left + new)
        reads.read(missing.value.question)
    admitted(chain, reads, chain.ids[-1], window=left + new)


def test_instructions_of_a_deleted_turn_leave_those_before_it(chain: Chain) -> None:
    for place, words in ((2, "first"), (9, "second")):
        Response.objects.filter(pk=chain.ids[place]).update(request={"instructions": words})
        later = Response.objects.filter(pk__in=chain.ids[place:])
        later.update(instructions_at=chain.ids[place])
    assert inherited_instructions(chain.ids[-1]) == "second"
    delete(chain.ids[9])
    assert inherited_instructions(chain.ids[-1]) == "first"
    delete(chain.ids[2])
    assert inherited_instructions(chain.ids[-1]) is None
