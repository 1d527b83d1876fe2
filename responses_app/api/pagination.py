"""Lists in pages. A cursor is the id of an entry, located by its sort key and never by counting."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet
from django.http import QueryDict
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from responses_app.api.query_params import read_count, read_text
from responses_app.protocol.errors import InvalidRequest
from responses_app.requests.fields import choice

ORDERS = ("asc", "desc")
DEFAULT_LIMIT = 20
MAX_LIMIT = 100


@dataclass(frozen=True)
class Page:
    """The part of a list that a client asks for."""

    after: str | None
    before: str | None
    limit: int
    is_ascending: bool

    @property
    def is_backwards(self) -> bool:
        """The nearest rows before ``before`` are wanted, so the walk starts there."""
        return self.before is not None and self.after is None


class IdPagination(BasePagination):
    """``after``, ``before``, ``limit`` and ``order``, as OpenAI has them."""

    default_limit = DEFAULT_LIMIT
    max_limit = MAX_LIMIT
    default_order = "desc"
    # Two columns whose values together are unique.
    sort_key = ("created_at", "pk")
    id_field = "pk"

    page: Page
    has_more: bool

    def read_page(self, params: QueryDict) -> Page:
        order = choice(*ORDERS)(params.get("order", self.default_order), "order")
        return Page(
            after=read_text(params, "after"),
            before=read_text(params, "before"),
            limit=read_count(params, "limit", self.default_limit, 1, self.max_limit),
            is_ascending=order == "asc",
        )

    def stored_id(self, entry_id: str) -> str:
        """The value of ``id_field`` for an id that clients see."""
        return entry_id

    def paginate_queryset(
        self,
        queryset: QuerySet[Any] | Sequence[Any],
        request: Request,
        view: APIView | None = None,
        *,
        cursors: QuerySet[Any] | None = None,
    ) -> list[Any]:
        """The entries of one page of rows, or of items in ascending order.

        ``cursors`` holds the rows that a cursor may name. It may hold more than the list does: a
        client may delete entries while it walks the list.
        """
        self.page = self.read_page(request.query_params)
        if isinstance(queryset, QuerySet):
            return self._rows(queryset, queryset if cursors is None else cursors)
        return self.page_of_items(list(queryset))

    def get_paginated_response(self, data: Sequence[Mapping[str, Any]]) -> Response:
        return Response(self.envelope(data))

    def envelope(self, data: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        return list_envelope(data, has_more=self.has_more)

    def _rows(self, rows: QuerySet[Any], cursors: QuerySet[Any]) -> list[Any]:
        page = self.page
        if page.after is not None:
            rows = rows.filter(self._beyond(cursors, "after", page.after, page.is_ascending))
        if page.before is not None:
            rows = rows.filter(self._beyond(cursors, "before", page.before, not page.is_ascending))
        found = list(self.ordered(rows, page.is_ascending != page.is_backwards)[: page.limit + 1])
        self.has_more = len(found) > page.limit
        found = found[: page.limit]
        if page.is_backwards:
            found.reverse()
        return found

    def ordered(self, rows: QuerySet[Any], is_ascending: bool) -> QuerySet[Any]:
        first, second = self.sort_key
        if is_ascending:
            return rows.order_by(first, second)
        return rows.order_by(f"-{first}", f"-{second}")

    def _beyond(self, cursors: QuerySet[Any], name: str, value: str, is_rising: bool) -> Q:
        """Rows past a cursor; the first condition alone is what an index can walk."""
        first, second = self.sort_key
        named = cursors.filter((self.id_field, self.stored_id(value)))
        position = named.values_list(first, second).first()
        if position is None:
            raise not_in_list(name, value)
        side = "gt" if is_rising else "lt"
        past = Q((f"{first}__{side}", position[0])) | Q((f"{second}__{side}", position[1]))
        return Q((f"{first}__{side}e", position[0])) & past

    def page_of_items(self, items: list[Any]) -> list[Any]:
        page = self.page
        if not page.is_ascending:
            items = items[::-1]
        ids = [item["id"] for item in items]
        start, end = 0, len(ids)
        if page.after is not None:
            start = _index(ids, "after", page.after) + 1
        if page.before is not None:
            end = _index(ids, "before", page.before)
        if page.is_backwards:
            self.has_more = end > page.limit
            return items[max(0, end - page.limit) : end]
        self.has_more = end - start > page.limit
        return items[start:end][: page.limit]


def list_envelope(data: Sequence[Mapping[str, Any]], *, has_more: bool) -> dict[str, Any]:
    first_id = last_id = None
    if data:
        first_id, last_id = data[0]["id"], data[-1]["id"]
    return {
        "object": "list",
        "data": data,
        "first_id": first_id,
        "last_id": last_id,
        "has_more": has_more,
    }


def not_in_list(name: str, value: str) -> InvalidRequest:
    return InvalidRequest(f"{name} is {value!r}, which is no id of this list.", param=name)


def _index(ids: list[str], name: str, value: str) -> int:
    if value not in ids:
        raise not_in_list(name, value)
    return ids.index(value)
