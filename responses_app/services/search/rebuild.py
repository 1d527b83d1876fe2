"""Rebuilds the search index from what is stored."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import datetime

from django.db.models import Q

from responses_app.models import Response, ResponseQuerySet, SearchEntry
from responses_app.services.search.index import read_words, store_words

PAGE_ROWS = 100  # in one transaction: a server beside this waits until it ends

Begin = Callable[[], AbstractContextManager[None]]


def searchable() -> ResponseQuerySet:
    """Ended responses with content. The housekeeping adds the others when it merges their logs."""
    kept = Response.objects.filter(is_stored=True, deleted_at__isnull=True)
    return kept.filter(finished_at__isnull=False, is_log_merged=True)


def rebuild(begin: Begin) -> Iterator[int]:
    """Adds what is missing, newest first; yields how many responses each step looked at."""
    for page in _pages():
        known = SearchEntry.objects.filter(response_id__in=page)
        missing = set(page) - set(known.values_list("response_id", flat=True))
        words = read_words(missing)
        if words:
            with begin():
                kept = searchable().filter(pk__in=words).select_for_update(of=("self",))
                still = list(kept.values_list("pk", flat=True))
                store_words({pk: words[pk] for pk in still})
        yield len(page)


def clear(begin: Begin) -> None:
    while True:
        with begin():
            some = list(SearchEntry.objects.values_list("pk", flat=True)[:PAGE_ROWS])
            SearchEntry.objects.filter(pk__in=some).delete()
        if not some:
            return


def _pages() -> Iterator[list[str]]:
    newest_first = searchable().order_by("-created_at", "-pk").values_list("created_at", "pk")
    last: tuple[datetime, str] | None = None
    while True:
        rows = newest_first
        if last is not None:
            at, pk = last
            rows = rows.filter(~Q(created_at=at, pk__gte=pk), created_at__lte=at)
        page = list(rows[:PAGE_ROWS])
        if not page:
            return
        last = page[-1]
        yield [pk for _, pk in page]
