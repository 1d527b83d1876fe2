"""What retention costs: a pass looks at each row that may go once, and at none that is young."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from responses_app.models import Response
from responses_app.services.archive.pruning import PAGE_ROWS, Search
from responses_app.services.archive.retention import (
    Rules,
    days_ago,
    excess,
    select,
)
from tests.support.bulk_rows import copy_response, give_content, make_row
from tests.support.query_plans import plan_lines, sqlite_steps, used_indexes

pytestmark = pytest.mark.django_db
FEW, MANY = 1_000, 50_000
COUNTED_STEPS = 5  # of SQLite's machine for each row that counts towards the number to keep


def fill(rows: int, *, is_chain: bool = False) -> None:
    """Rows of the last thirty days, a second apart, oldest first."""
    copy_response(make_row(at=timezone.now() - timedelta(days=30)), rows - 1, is_chain=is_chain)
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")


def whole_pass(rules: Rules) -> int:
    """How many steps of a search a pass takes, with nothing removed."""
    search, steps = Search(select(rules)), 0
    while not search.is_over:
        search.next_batch()
        steps += 1
    return steps


@pytest.mark.skipif(connection.vendor != "sqlite", reason="counts the steps of SQLite")
def test_looking_costs_the_same_however_much_is_kept() -> None:
    looks: dict[str, Callable[[], Any]] = {
        "nothing is old": lambda: whole_pass(Rules(created_before=days_ago(31))),
        "a page by age": lambda: Search(select(Rules(created_before=days_ago(5)))).next_batch(),
    }
    fill(FEW)
    page = {name: sqlite_steps(look) for name, look in looks.items()}
    copy_response(make_row(at=timezone.now() - timedelta(days=20)), MANY - FEW)
    for name, look in looks.items():
        assert sqlite_steps(look) <= 1.1 * page[name] + 100, name
    too_many = Rules(keep=Response.objects.count() - 100)
    count = sqlite_steps(lambda: excess(too_many))
    assert count <= COUNTED_STEPS * MANY
    assert sqlite_steps(lambda: whole_pass(too_many)) - count <= 2 * page["a page by age"]


def test_a_pass_looks_once_at_what_has_to_stay() -> None:
    fill(5 * PAGE_ROWS, is_chain=True)
    newest = Response.objects.order_by("-turn").first()
    assert newest is not None
    make_row(newest.session, previous=newest)  # so that the whole chain stays
    assert whole_pass(Rules(created_before=days_ago(5))) == 6  # the last page is empty
    assert whole_pass(Rules(keep=1)) == 6


def test_pages_counts_and_removals_follow_their_indexes() -> None:
    fill(4_000)
    give_content()
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL enable_seqscan = off")
    old, unused = Search(select(Rules(created_before=days_ago(5)))), Search(select(Rules(keep=3_000)))
    whole = {name for name in _index_names() if "app_response_conversation_id" in name}  # most rows are in none
    by_id = {name for name in _index_names() if "_response_" in name or "_session_" in name or "_previous_" in name}
    kept = {"response_least_used", "response_newest_turn"}  # both hold just what is kept
    batch_of = {"primary key", "one_response_per_turn", *by_id} - whole
    batch_of |= {"segment_position_is_unique", "input_position_is_unique"}  # begin with the response
    batch_of.add("tool_event_by_name")  # has the response too; PostgreSQL may take it while the table is small
    looks: dict[str, tuple[Callable[[], Any], set[str], set[str]]] = {
        "a count": (lambda: excess(Rules(keep=10)), set(), kept),
        "a boundary": (lambda: select(Rules(keep=3_900)), {"response_least_used"}, kept),
        "a page by age": (old.next_batch, {"response_newest"}, batch_of),
        "a page by use": (unused.next_batch, {"response_least_used"}, batch_of),
        "the next batch": (old.next_batch, {"primary key"}, batch_of),
        "a removal": (lambda: old.remove(old.next_batch()), {"primary key"}, batch_of),
    }
    wrong = {}
    for name, (look, needed, allowed) in looks.items():
        used = used_indexes(plan_lines(look))
        if not needed <= used <= needed | allowed:
            wrong[name] = {"not used": needed - used, "not allowed": used - needed - allowed}
    assert wrong == {}


def _index_names() -> list[str]:
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT indexname FROM pg_indexes WHERE schemaname = 'public'")
        else:
            cursor.execute("SELECT name FROM sqlite_master WHERE type = 'index'")
        return [str(name) for (name,) in cursor.fetchall()]
