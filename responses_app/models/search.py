"""The search index: the words of questions and answers.

PostgreSQL has a GIN index over ``words``. SQLite has an FTS5 table beside this one, which triggers
keep equal to it; a migration that makes SQLite copy this table has to create the triggers again.
"""

from collections.abc import Sequence

from django.db import connection, models, transaction
from django.db.models import F, Func, Value
from django.db.models.expressions import RawSQL

FTS_TABLE = "responses_app_search"
FTS_MATCHES = f"SELECT rowid FROM {FTS_TABLE} WHERE {FTS_TABLE} MATCH %s"


class HasWords(Func):
    """Written as in the index of PostgreSQL, or the index would not be used."""

    template = "array_to_tsvector(string_to_array(%(expressions)s::tsquery"
    arg_joiner = ", ' ')) @@ "
    output_field = models.BooleanField()


class SearchEntryQuerySet(models.QuerySet["SearchEntry"]):
    def with_words(self, words: Sequence[str]) -> "SearchEntryQuerySet":
        """Entries that have all of these, and a word that begins with the last one."""
        if connection.vendor == "sqlite":
            return self.filter(pk__in=RawSQL(FTS_MATCHES, (_fts_query(words),)))  # noqa: S611
        quoted = " & ".join(f"'{word}'" for word in words)
        return self.filter(HasWords(F("words"), Value(f"{quoted}:*")))

    def response_ids(self, words: Sequence[str], limit: int, offset: int = 0) -> list[str]:
        """Of the first entries that the index gives.

        SQLite finds all matches before it limits the entries, so it has to limit the matches.
        PostgreSQL expects many matches of any beginning of a word, and little work for each row:
        to find the first of them, it would read the whole table.
        """
        if connection.vendor == "sqlite":
            part = (_fts_query(words), limit, offset)
            some = self.filter(pk__in=RawSQL(f"{FTS_MATCHES} LIMIT %s OFFSET %s", part))  # noqa: S611
            return list(some.values_list("response_id", flat=True))
        ids = self.with_words(words).values_list("response_id", flat=True)[offset : offset + limit]
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL enable_seqscan = off")
            found = list(ids)
            cursor.execute("SET LOCAL enable_seqscan TO DEFAULT")
        return found


def _fts_query(words: Sequence[str]) -> str:
    quoted = " ".join(f'"{word}"' for word in words)
    return f"{quoted} *"


class SearchEntry(models.Model):
    """The distinct words of a response; written after its end, gone with its content."""

    response = models.OneToOneField(
        "responses_app.Response", on_delete=models.CASCADE, related_name="search_entry"
    )
    words = models.TextField()

    objects = SearchEntryQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "search entries"

    def __str__(self) -> str:
        return f"words of {self.response_id}"
