"""Pages of a list of any length: each begins after the last row of the page before it."""

from datetime import datetime
from typing import Any

from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import ValidationError
from django.core.paginator import Paginator
from django.db import DataError
from django.db.models import Field, Model, Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone

from responses_app.admin.dates import DateLinks, date_links

AFTER = "after"
BEFORE = "before"
CURSORS = (AFTER, BEFORE)
# Of a parameter: the year 10000, a number that no column holds, a NUL.
UNREADABLE = (OverflowError, ValueError, DataError)
COUNTED_ROWS = 1000  # counting more costs more than the page itself


class StrictChangeList(ChangeList):
    """A parameter that no column can hold leads to the list with a note."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        try:
            super().__init__(*args, **kwargs)
        except UNREADABLE as error:
            raise IncorrectLookupParameters(error) from error


class KeysetChangeList(StrictChangeList):
    """An offset would read all rows before the page, and rows that come meanwhile would move it."""

    is_keyset = True
    cursors = CURSORS  # which a search leaves behind: it begins with its first page

    def __init__(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        self.previous_link = ""
        self.next_link = ""
        self.dates: DateLinks | None = None
        super().__init__(request, *args, **kwargs)
        try:
            if self.date_hierarchy:
                self.dates = date_links(self)
        except UNREADABLE as error:
            raise IncorrectLookupParameters(error) from error
        self.first_link = self.get_query_string(remove=list(CURSORS))

    def get_filters_params(self, params: Any = None) -> dict[str, Any]:
        found: dict[str, Any] = super().get_filters_params(params)
        for name in CURSORS:
            found.pop(name, None)
        return found

    def get_query_string(self, new_params: Any = None, remove: Any = None) -> str:
        """Links to other filters and orders lead to their first page."""
        new = dict.fromkeys(CURSORS) | (new_params or {})
        return super().get_query_string(new, remove)

    def get_results(self, request: HttpRequest) -> None:
        order = Order(self.model, self.queryset)
        cursor = self.params.get(BEFORE) or self.params.get(AFTER)
        is_backwards = BEFORE in self.params
        rows = self.queryset
        if is_backwards:
            rows = rows.reverse()
        if cursor:
            rows = rows.filter(order.beyond(cursor, is_backwards=is_backwards))
        keys = list(rows.values_list("pk", flat=True)[: self.list_per_page + 1])
        has_more = len(keys) > self.list_per_page
        page = self._rows(keys[: self.list_per_page])
        if is_backwards:
            page.reverse()
        has_previous, has_next = bool(cursor), has_more
        if is_backwards:
            has_previous, has_next = has_more, True
        if page and has_previous:
            self.previous_link = self.get_query_string({BEFORE: order.cursor(page[0])})
        if page and has_next:
            self.next_link = self.get_query_string({AFTER: order.cursor(page[-1])})
        self.result_list = page
        self.result_count = self._count(page, is_whole=not has_previous and not has_next)
        self.full_result_count = None
        self.show_full_result_count = False
        self.show_admin_actions = True
        self.can_show_all = self.show_all = self.multi_page = False
        self.paginator = Paginator(page, self.list_per_page)

    def _rows(self, keys: list[Any]) -> list[Model]:
        """The keys come first: a sort of whole rows would read all columns of all of them."""
        rows = self.root_queryset.in_bulk(keys)
        return [rows[key] for key in keys if key in rows]

    def _count(self, page: list[Model], *, is_whole: bool) -> int:
        """A search is not counted: it would be done twice."""
        if is_whole or self.query:
            return len(page)
        return len(self.queryset.order_by().values_list("pk")[:COUNTED_ROWS])


class Order:
    """The column that a list is sorted by; the primary key decides between equal values."""

    def __init__(self, model: type[Model], rows: QuerySet[Any]) -> None:
        first = str(rows.query.order_by[0])
        self._is_descending = first.startswith("-")
        self._name = first.removeprefix("-")
        self._model = model

    def cursor(self, row: Model) -> str:
        if self._name == "pk":
            return f",{row.pk}"
        value = getattr(row, self._name)
        if isinstance(value, datetime):
            value = value.isoformat()
        return f"{value},{row.pk}"

    def beyond(self, cursor: str, *, is_backwards: bool) -> Q:
        """The rows after the one that the cursor names, or before it."""
        value, _, key = cursor.partition(",")
        is_down = self._is_descending is not is_backwards
        # Django sorts equal values by descending key, whatever the order of the values is.
        pk_passed = "pk__lte" if is_backwards else "pk__gte"
        try:
            pk = self._model._meta.pk.to_python(key)
            if self._name == "pk":
                return Q(("pk__lt" if is_down else "pk__gt", pk))
            field = self._model._meta.get_field(self._name)
            assert isinstance(field, Field)
            at = _with_zone(field.to_python(value))
        except (ValidationError, ValueError) as error:
            raise IncorrectLookupParameters(error) from error
        bound = "lte" if is_down else "gte"
        is_passed = Q((self._name, at), (pk_passed, pk))
        return Q((f"{self._name}__{bound}", at)) & ~is_passed


def _with_zone(value: Any) -> Any:
    """A time without a zone is no part of a cursor that a list has made."""
    if isinstance(value, datetime) and timezone.is_naive(value):
        raise ValueError(value)
    return value
