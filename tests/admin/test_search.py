"""Search: words of questions and answers over everything stored, and beginnings of ids."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import connection
from django.utils import timezone

from responses_app.admin import searching
from responses_app.admin.searching import search_responses, search_sessions
from responses_app.models import InputItem, Response, SearchEntry, Session
from responses_app.protocol.items import Item
from responses_app.services.archive.pruning import Search
from responses_app.services.archive.retention import Rules, select
from responses_app.services.lifecycle.delete import erase
from responses_app.services.search.index import read_words, store_words
from responses_app.services.search.words import MAX_WORDS_BYTES, words_in, words_of
from tests.support.bulk_rows import copy_response, make_row
from tests.support.query_plans import explained

pytestmark = pytest.mark.django_db


def message(role: str, text: str) -> Item:
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}


def asked(question: str, answer: str = "", **fields: Any) -> Response:
    row = make_row(output=[message("assistant", answer)], **fields)
    InputItem.objects.create(response=row, position=0, item=message("user", question))
    store_words(read_words([row.pk]))
    return row


def found(term: str) -> set[str]:
    return set(search_responses(Response.objects.all(), term).values_list("pk", flat=True))


def test_words_of_the_question_and_of_the_answer_are_found() -> None:
    row = asked("How tall is the Säntis?", "It is 2502 m tall.")
    asked("Something else")
    for term in ("säntis", "SANTIS", "2502", "tall santis", "how sän", "(Säntis?)"):
        assert found(term) == {row.pk}, term
    assert found("santis everest") == set()
    assert found("ntis") == set()
    assert found("?!") == set()


@pytest.mark.parametrize("search", [search_responses, search_sessions])
def test_words_are_looked_up_in_their_index(search: Callable[..., Any]) -> None:
    """Also if nothing has them: PostgreSQL takes reading the whole table for cheap then."""
    model = Response if search is search_responses else Session
    with explained("responses_app_searchentry") as plan:
        assert not search(model._default_manager.all(), "nothing").exists()
    index = "VIRTUAL TABLE INDEX" if connection.vendor == "sqlite" else "search_entry_words"
    assert index in "\n".join(plan)


def test_scripts_without_spaces_are_found() -> None:
    row = asked("日本の首都はどこですか")
    asked("中国")
    assert found("首都") == {row.pk}


@pytest.mark.parametrize(("few", "many"), [(100, 200), (10, 200), (10, 20)])
def test_old_responses_are_found_behind_many_newer_ones(few: int, many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their words are found first, are sorted by the database, or are found along the list."""
    monkeypatch.setattr(searching, "FEW", few)
    monkeypatch.setattr(searching, "MANY", many)
    first = asked("the needle")
    newest = make_row()
    copy_response(newest, 30)
    others = Response.objects.exclude(pk=first.pk).values_list("pk", flat=True)
    SearchEntry.objects.bulk_create(SearchEntry(response_id=pk, words="the haystack") for pk in others)
    assert found("needle") == {first.pk}
    assert len(found("the")) == 32
    sessions = search_sessions(Session.objects.all(), "the")
    assert set(sessions) == {first.session, newest.session}


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL chooses by its statistics")
@pytest.mark.parametrize(
    ("search", "model", "order", "newest"),
    [
        (search_responses, Response, "-created_at", "response_newest"),
        (search_sessions, Session, "-last_active_at", "session_by_activity"),
    ],
)
def test_words_of_many_old_responses_are_found_without_a_walk_over_the_newer(
    search: Callable[..., Any], model: type[Any], order: str, newest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "FEW", 2)
    for number in range(3):
        asked(f"needle {number}")
    with explained(model._meta.db_table) as plan:
        assert len(search(model.objects.order_by(order), "needle")[:51]) == 3
    assert newest not in "\n".join(plan)


def test_a_word_of_very_many_responses_is_looked_for_in_each_row_of_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """PostgreSQL would join the words of all responses with those that a filter leaves: 1 s at 200,000 rows."""
    monkeypatch.setattr(searching, "FEW", 1)
    monkeypatch.setattr(searching, "MANY", 2)
    rows = [asked(f"needle {number}") for number in range(4)]
    completed = Response.objects.filter(status=rows[0].status).order_by("-created_at")
    with explained("responses_app_response") as plan:
        assert len(search_responses(completed, "needle")[:51]) == 4
    lines = "\n".join(plan)
    row_by_row = "CORRELATED SCALAR SUBQUERY" if connection.vendor == "sqlite" else "SubPlan"
    assert row_by_row in lines
    assert "Join" not in lines


def test_the_beginning_of_an_id_is_found_as_the_list_prints_it() -> None:
    rows = [make_row(id=f"resp_{digits}") for digits in ("0123456789ab", "0123456700ab", "ff")]
    assert found("resp_01234567…") == {rows[0].pk, rows[1].pk}
    assert found("resp_0123456789") == {rows[0].pk}
    assert found("resp_ff") == {rows[2].pk}


def test_erased_and_pruned_content_is_not_found() -> None:
    erased, pruned = asked("erased word"), asked("pruned word")
    erase(erased.pk)
    assert found("erased") == set()
    search = Search(select(Rules(created_before=timezone.now())))
    while not search.is_over:
        search.remove(search.next_batch())
    assert not Response.objects.filter(pk=pruned.pk).exists()
    assert not SearchEntry.objects.exists()
    assert found("pruned") == set()


def test_what_is_not_stored_or_deleted_has_no_words() -> None:
    unstored = asked("one", is_stored=False)
    deleted = asked("two", deleted_at=timezone.now())
    assert read_words([unstored.pk, deleted.pk]) == {}
    assert not SearchEntry.objects.exists()


def test_the_index_is_rebuilt_from_what_is_stored(capsys: pytest.CaptureFixture[str]) -> None:
    row, other = asked("kept question", "its answer"), asked("another")
    SearchEntry.objects.filter(response=row).delete()
    assert found("kept") == set()
    call_command("rebuild_search")
    assert found("kept answer") == {row.pk}
    assert "1 of 2 responses added" in capsys.readouterr().out
    SearchEntry.objects.filter(response=other).update(words="wrong")
    call_command("rebuild_search", "--all")
    assert found("another") == {other.pk}
    assert "2 of 2 responses added" in capsys.readouterr().out


def test_deleting_an_owner_deletes_the_words() -> None:
    row = asked("of an owner")
    get_user_model().objects.filter(pk=row.owner_id).delete()
    assert not SearchEntry.objects.exists()
    asked("of the next owner")
    assert len(found("owner")) == 1


def test_words_are_bounded_and_encoded_data_is_left_out() -> None:
    assert words_in("ab " + "A" * 65 + " ab C") == ["ab", "c"]
    many = words_of([message("user", " ".join(f"{number:06d}é" for number in range(100_000)))])
    assert MAX_WORDS_BYTES - 20 < len(many.encode()) <= MAX_WORDS_BYTES
    assert many.split(" ")[-1].isalnum()
