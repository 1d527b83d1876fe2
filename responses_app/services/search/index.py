"""Writes the search index, after the end of a response and off the event path."""

from collections.abc import Collection, Mapping

from responses_app.models import Response, SearchEntry
from responses_app.services.history.chain import inputs_of
from responses_app.services.search.words import words_of


def read_words(response_ids: Collection[str]) -> dict[str, str]:
    """The words of those of them that have content."""
    kept = Response.objects.filter(pk__in=response_ids, is_stored=True, deleted_at__isnull=True)
    outputs = dict(kept.values_list("pk", "output"))
    inputs = inputs_of(outputs)
    found: dict[str, str] = {}
    for response_id, output in outputs.items():
        words = words_of([*inputs[response_id], *(output or [])])
        if words:
            found[response_id] = words
    return found


def store_words(words: Mapping[str, str]) -> None:
    """In the caller's transaction, which has checked that the content is still there."""
    rows = [SearchEntry(response_id=pk, words=text) for pk, text in words.items()]
    SearchEntry.objects.filter(response_id__in=words).delete()
    SearchEntry.objects.bulk_create(rows)


def forget_words(response_id: str) -> None:
    SearchEntry.objects.filter(response_id=response_id).delete()
