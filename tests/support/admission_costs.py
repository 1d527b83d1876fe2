"""What one more turn costs the database behind chains of different lengths; run inside a process of the server's home.

Rows are counted by the database itself: PostgreSQL counts the tuples it fetches, SQLite the steps of its programs.
"""

import json
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from django.db import connection, transaction

from gateway_app.runtime.resumption import read_attempts
from gateway_app.runtime.turn_context import build_turn_context
from responses_app.eventlog.store import event_store
from responses_app.models import Response
from responses_app.models.recent import forget_recent
from responses_app.protocol.context_limits import ContextLimits
from responses_app.protocol.ids import new_response_id
from responses_app.protocol.items import CompactedContext
from responses_app.services.history.compaction import seal_compaction
from responses_app.services.lifecycle.admission import Admission
from responses_app.services.lifecycle.admission_rows import store_admission
from responses_app.services.lifecycle.admit import prepare
from responses_app.services.lifecycle.read_ahead import ReadAhead
from tests.support.long_chains import (
    Chain,
    analyze,
    message,
    store_chain,
)

FETCHED = "SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) FROM pg_stat_xact_user_tables"
WIDE = 10**7  # tokens
LATE = 400  # turns: a cost for each of them shows at once


class Cost:
    """The queries of a block, and the rows that the database read for them."""

    def __init__(self) -> None:
        self.queries = 0
        self.rows = 0
        self._stack = ExitStack()

    def __enter__(self) -> "Cost":
        self._rows_before = self._fetched()
        if connection.vendor == "sqlite":
            connection.connection.set_progress_handler(self._step, 1)
        self._stack.enter_context(connection.execute_wrapper(self._execute))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        if connection.vendor == "sqlite":
            connection.connection.set_progress_handler(None, 1)
        self.rows += self._fetched() - self._rows_before

    def _step(self) -> None:
        self.rows += 1

    def _execute(self, execute: Callable[..., Any], *args: Any) -> Any:
        self.queries += 1
        return execute(*args)

    def _fetched(self) -> int:
        if connection.vendor == "sqlite":
            return 0
        with connection.cursor() as cursor:
            cursor.execute(FETCHED)
            return int(cursor.fetchone()[0])


def admission(chain: Chain, **fields: Any) -> Admission:
    items = fields.pop("items", [message("user", "one more")])
    return Admission(owner_id=chain.owner_id, model="hermes-agent", items=items, **fields)


def cost_of_admission(asked: Admission) -> list[int]:
    """Within the writer's transaction."""
    response_id = new_response_id()
    prepared = prepare(asked)
    with transaction.atomic():
        with Cost() as cost:
            store_admission(response_id, prepared, event_store.tails.of(response_id), ReadAhead())
        transaction.set_rollback(True)
    return [cost.queries, cost.rows]


def cost_of_context(asked: Admission) -> list[int]:
    """Of what a claimed turn reads before its model is called; the last number is what the model is shown."""
    response_id = new_response_id()
    with transaction.atomic():
        store_admission(response_id, asked, event_store.tails.of(response_id), ReadAhead())
    row = Response.objects.get(pk=response_id)
    earlier = read_attempts(response_id)
    build_turn_context(row, None, earlier)  # what is read once in a process is read now
    forget_recent()  # and what may have been read a moment ago is read again
    with transaction.atomic(), Cost() as cost:
        context = build_turn_context(row, None, earlier)
    Response.objects.filter(pk=response_id).delete()
    return [cost.queries, cost.rows, len(context.call.items)]


def stored(turns: int) -> Chain:
    chain = store_chain(f"led {turns:05}", turns, is_conversation=True)
    assert chain.conversation is not None
    return chain


def admissions(led: Chain, resent: Chain) -> dict[str, list[int]]:
    assert led.conversation is not None
    history = [{name: value for name, value in item.items() if name != "id"} for item in resent.items]
    repeating = [*history, message("user", "one more")]
    by_name = {"session_id": led.session.public_id}
    asked = {
        "chain": admission(led, previous_id=led.ids[-1]),
        "chain, window known": admission(led, previous_id=led.ids[-1], limits=ContextLimits(WIDE)),
        "session": admission(led, **by_name),
        "session, unstored": admission(led, **by_name, is_stored=False),
        "conversation": admission(led, conversation=led.conversation.pk),
        "conversation, window known": admission(led, conversation=led.conversation.pk, limits=ContextLimits(WIDE)),
        "resent": admission(resent, items=repeating),
        "resent, window known": admission(resent, items=repeating, limits=ContextLimits(WIDE)),
    }
    return {name: cost_of_admission(one) for name, one in asked.items()}


def contexts(chain: Chain) -> dict[str, list[int]]:
    assert chain.conversation is not None
    cut = {"request": {"truncation": "auto"}, "echo": {"truncation": "auto"}}
    behind_it = {"previous_id": chain.ids[-1]}
    costs = {
        "cut": cost_of_context(admission(chain, **behind_it, **cut)),
        "conversation, cut": cost_of_context(admission(chain, conversation=chain.conversation.pk, **cut)),
    }
    compact(chain.owner_id, chain.ids[-2])
    costs["compacted"] = cost_of_context(admission(chain, **behind_it))
    return costs


def compact(owner_id: int, response_id: str) -> None:
    """The output of a turn stands for all before it."""
    compacted = CompactedContext([message("user", "summary")], replaces_all=True)
    sealed = {"type": "compaction", "encrypted_content": seal_compaction(owner_id, compacted)}
    Response.objects.filter(pk=response_id).update(output=[sealed])


def main() -> None:
    """An early and a late turn of each kind, as JSON."""
    led = [stored(10), stored(LATE)]
    resent = [store_chain(f"resent {turns:05}", turns, waits_for_turn=False) for turns in (60, LATE)]
    longer = [stored(61), stored(LATE + 1)]
    analyze()
    found = {
        "admissions": [admissions(*chains) for chains in zip(led, resent, strict=True)],
        "contexts": [contexts(chain) for chain in longer],
    }
    print(json.dumps(found))
