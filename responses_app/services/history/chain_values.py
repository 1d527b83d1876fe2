"""The chain that ends with a turn: the walk back, and the values that each row inherits."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any

from django.db import connection

from responses_app.models import Response
from responses_app.protocol.items import COMPACTION, Item
from responses_app.protocol.token_estimate import estimate_tokens
from responses_app.services.history.compaction import expand
from responses_app.services.lifecycle.read_ahead import ReadAhead

PAGE_TURNS = (16, 64, 256)  # most readers need few turns; the others need few queries
WALK = """
    WITH RECURSIVE chain (id, previous_id, step) AS (
        SELECT id, previous_id, 1 FROM responses_app_response WHERE id = %s
        UNION ALL
        SELECT turn.id, turn.previous_id, chain.step + 1
        FROM chain JOIN responses_app_response turn ON turn.id = chain.previous_id
        WHERE chain.step < %s
    )
    SELECT id, previous_id FROM chain ORDER BY step
"""


class ChainLoops(Exception):
    """A turn continues itself: the stored data is damaged."""


def ids_back(start: str | None, first_page: int = PAGE_TURNS[0]) -> Iterator[list[str]]:
    """The ids of a chain, newest first; one query for each page."""
    seen: set[str] = set()
    sizes = chain((first_page,), PAGE_TURNS[1:], repeat(PAGE_TURNS[-1]))
    at = start
    while at is not None:
        if at in seen:
            raise ChainLoops(at)
        with connection.cursor() as cursor:
            cursor.execute(WALK, (at, next(sizes)))
            rows = cursor.fetchall()
        if not rows:
            return
        page = [row[0] for row in rows]
        seen.update(page)
        yield page
        at = rows[-1][1]


# -- deleted turns ----------------------------------------------------------------------
def deleted_before(previous: Response | None, reads: ReadAhead) -> tuple[str, ...]:
    """Deleted turns of a chain, newest first: the model does not see them."""
    if previous is None:
        return ()
    deleted = Response.objects.filter(
        chain_root=previous.chain_root,
        chain_depth__lte=previous.chain_depth,
        deleted_at__isnull=False,
    )
    depths = dict(deleted.values_list("pk", "chain_depth"))
    if not depths:
        return ()
    turns = previous.chain_depth - min(depths.values()) + 1
    return reads.get(DeletedTurns(previous.pk, frozenset(depths), turns))


@dataclass(frozen=True)
class DeletedTurns:
    """Which of these turns a turn continues. Others are in branches beside it."""

    previous_id: str
    deleted: frozenset[str]
    turns: int  # as far back as the oldest of them

    def answer(self) -> tuple[str, ...]:
        found: list[str] = []
        turns = 0
        for page in ids_back(self.previous_id):
            for response_id in page:
                if response_id in self.deleted:
                    found.append(response_id)
            turns += len(page)
            if turns >= self.turns:
                break
        return tuple(found)


# -- values that each row inherits ------------------------------------------------------
def position_in_chain(
    response_id: str, previous: Response | None, *, has_instructions: bool, brings_history: bool
) -> dict[str, Any]:
    """The position of a turn in its chain, and its instructions: these never change."""
    instructions_at = response_id if has_instructions else ""
    if previous is None:
        return {"chain_root": response_id, "chain_depth": 0, "instructions_at": instructions_at}
    if not has_instructions and not brings_history:
        instructions_at = previous.instructions_at
    return {
        "chain_root": previous.chain_root,
        "chain_depth": previous.chain_depth + 1,
        "instructions_at": instructions_at,
    }


@dataclass(frozen=True)
class ContextSize:
    """The size of the context up to the end of a turn, and the nearest turn with a compaction."""

    context_tokens: int | None = 0  # None: neither is known
    compaction_at: str = ""

    def after(self, owner_id: int, response_id: str, items: list[Item]) -> "ContextSize":
        """The same, with the items of the next turn."""
        expanded = expand(owner_id, items)
        added = estimate_tokens(expanded.items, None, [])
        tokens: int | None = None
        if expanded.replaces_all:
            tokens = added
        elif self.context_tokens is not None:
            tokens = self.context_tokens + added
        compaction_at = self.compaction_at
        if any(item["type"] == COMPACTION for item in items):
            compaction_at = response_id
        return ContextSize(tokens, compaction_at)

    def columns(self) -> dict[str, Any]:
        return {"context_tokens": self.context_tokens, "compaction_at": self.compaction_at}


def inherited_instructions(previous_id: str | None) -> str | None:
    """The nearest instructions of a chain; an empty text clears those before it.

    The instructions of a deleted turn are gone: those before it count again.
    """
    at = previous_id
    while at is not None:
        rows = Response.objects.filter(pk=at)
        source = rows.values_list("instructions_at", flat=True).first()
        turns = Response.objects.filter(pk=source or "")
        turn = turns.only("request", "deleted_at", "previous_id").first()
        if turn is None:
            return None
        if turn.deleted_at is None:
            return turn.request.get("instructions") or None
        at = turn.previous_id
    return None
