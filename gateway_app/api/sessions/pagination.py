"""Pages of sessions and of messages: by offset as Hermes has them, or by the id they follow."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import QuerySet
from django.http import QueryDict
from rest_framework.request import Request
from rest_framework.views import APIView

from responses_app.api.pagination import IdPagination, Page
from responses_app.api.query_params import read_count, read_text
from responses_app.protocol.errors import InvalidRequest
from responses_app.requests.fields import choice

SESSIONS = 50
MAX_SESSIONS = 200
MAX_MESSAGES = 500
MAX_OFFSET = 10**9
OLDEST = "oldest"
LATEST = "latest"
ORDERS = (OLDEST, LATEST)


class SessionPagination(IdPagination):
    """The most recently active sessions first."""

    default_limit = SESSIONS
    max_limit = MAX_SESSIONS
    sort_key = ("last_active_at", "pk")
    id_field = "public_id"

    offset = 0

    @property
    def is_first_page(self) -> bool:
        page = self.page
        return not (self.offset or page.after or page.before or page.is_ascending)

    def paginate_queryset(
        self,
        queryset: QuerySet[Any] | Sequence[Any],
        request: Request,
        view: APIView | None = None,
        *,
        cursors: QuerySet[Any] | None = None,
    ) -> list[Any]:
        self.page = self.read_page(request.query_params)
        self.offset = read_offset(request.query_params)
        if not self.offset:
            return super().paginate_queryset(queryset, request, view, cursors=cursors)
        assert isinstance(queryset, QuerySet)
        limit = self.page.limit
        ordered = self.ordered(queryset, self.page.is_ascending)
        found = list(ordered[self.offset : self.offset + limit + 1])
        self.has_more = len(found) > limit
        return found[:limit]

    def envelope(self, data: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        return super().envelope(data) | {"limit": self.page.limit, "offset": self.offset}


class MessagePagination(IdPagination):
    """Always in their order; ``order`` names the end from which ``offset`` and ``limit`` count."""

    default_limit = MAX_MESSAGES
    max_limit = MAX_MESSAGES

    order = LATEST
    offset = 0

    def read_page(self, params: QueryDict) -> Page:
        self.order = choice(*ORDERS)(params.get("order", LATEST), "order")
        limit = read_count(params, "limit", self.default_limit, 1, self.max_limit)
        self.offset = read_offset(params)
        return Page(
            after=read_text(params, "after"),
            before=read_text(params, "before"),
            limit=limit,
            is_ascending=True,
        )

    def page_of_items(self, items: list[Any]) -> list[Any]:
        if self.page.after or self.page.before:
            return super().page_of_items(items)
        limit = self.page.limit
        if self.order == OLDEST:
            rest = items[self.offset :]
            found = rest[:limit]
        else:
            rest = items[: max(0, len(items) - self.offset)]
            found = rest[-limit:]
        self.has_more = len(rest) > limit
        return found

    def envelope(self, data: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        pagination = {
            "limit": self.page.limit,
            "offset": self.offset,
            "order": self.order,
            "returned": len(data),
        }
        return super().envelope(data) | {"pagination": pagination}


def read_offset(params: QueryDict) -> int:
    offset = read_count(params, "offset", 0, 0, MAX_OFFSET)
    if offset and (params.get("after") or params.get("before")):
        raise InvalidRequest("Send offset or a cursor, not both.", param="offset")
    return offset
