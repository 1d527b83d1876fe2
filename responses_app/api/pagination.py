"""Lists in pages: a cursor is the id of an item, found again by its place in the order, never by counting."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from django.db.models import Model, Q, QuerySet
from django.http import QueryDict

from responses_app.http.session_key import has_controls
from responses_app.protocol.errors import InvalidRequest
from responses_app.protocol.items import Item
from responses_app.requests.fields import choice, integer, optional, wrong_type

DEFAULT_LIMIT = 20
MAX_LIMIT = 100
MAX_LIMIT_DIGITS = 9
ORDERS = ("asc", "desc")

M = TypeVar("M", bound=Model)
# Two columns that give every row a place of its own.
Key = tuple[str, str]


@dataclass(frozen=True)
class Page:
    """Which part of a list somebody asks for."""

    after: str | None
    before: str | None
    limit: int
    is_ascending: bool

    @property
    def is_backwards(self) -> bool:
        """The nearest rows in front of ``before`` are wanted, so the walk starts there."""
        return self.before is not None and self.after is None


def read_page(
    params: QueryDict,
    default_limit: int = DEFAULT_LIMIT,
    max_limit: int = MAX_LIMIT,
    default_order: str = "desc",
) -> Page:
    order = choice(*ORDERS)(params.get("order", default_order), "order")
    return Page(
        after=read_word(params, "after"),
        before=read_word(params, "before"),
        limit=read_count(params, "limit", default_limit, 1, max_limit),
        is_ascending=order == "asc",
    )


def read_word(params: QueryDict, name: str) -> str | None:
    """A value to look for; the empty one that some clients send means none."""
    value = params.get(name)
    if value and has_controls(value):
        problem = f"{name} contains control characters."
        raise InvalidRequest(problem, param=name, code="invalid_text")
    return value or None


def read_choice(params: QueryDict, name: str, allowed: Iterable[str]) -> str | None:
    """One of a few words; the empty one is none of them."""
    chosen: str | None = optional(choice(*allowed))(params.get(name), name)
    return chosen


def cut(
    rows: QuerySet[M], page: Page, key: Key, cursor: Callable[[str], QuerySet[M]]
) -> tuple[list[M], bool]:
    """The page's rows, and whether more follow; ``cursor`` finds the row that an id stands for."""
    for name, value, is_rising in (
        ("after", page.after, page.is_ascending),
        ("before", page.before, not page.is_ascending),
    ):
        if value is not None:
            rows = rows.filter(_beyond(key, _place(cursor(value), key, name, value), is_rising))
    sign = "" if page.is_ascending != page.is_backwards else "-"
    found = list(rows.order_by(*(sign + column for column in key))[: page.limit + 1])
    shown = found[: page.limit]
    if page.is_backwards:
        shown.reverse()
    return shown, len(found) > page.limit


def cut_items(items: list[Item], page: Page) -> tuple[list[Item], bool]:
    """``cut`` for items that are at hand, in rising order."""
    ordered = items if page.is_ascending else items[::-1]
    ids = [item["id"] for item in ordered]
    start = _index(ids, page.after, "after") + 1 if page.after is not None else 0
    end = _index(ids, page.before, "before") if page.before is not None else len(ids)
    if page.is_backwards:
        return ordered[max(0, end - page.limit) : end], end > page.limit
    return ordered[start:end][: page.limit], end - start > page.limit


def _index(ids: list[str], value: str, name: str) -> int:
    if value not in ids:
        raise InvalidRequest(f"{name} is {value!r}, which is no id of this list.", param=name)
    return ids.index(value)


def envelope(data: list[dict[str, Any]], *, has_more: bool) -> dict[str, Any]:
    return {
        "object": "list",
        "data": data,
        "first_id": data[0]["id"] if data else None,
        "last_id": data[-1]["id"] if data else None,
        "has_more": has_more,
    }


def read_count(params: QueryDict, name: str, default: int, low: int, high: int) -> int:
    value = params.get(name)
    if value is None:
        return default
    digits = value.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= MAX_LIMIT_DIGITS):
        raise wrong_type(name, "a whole number")
    count: int = integer(low, high)(int(value), name)
    return count


def _place(found: QuerySet[M], key: Key, name: str, value: str) -> tuple[Any, ...]:
    place: tuple[Any, ...] | None = found.values_list(*key).first()
    if place is None:
        raise InvalidRequest(f"{name} is {value!r}, which is no id of this list.", param=name)
    return place


def _beyond(key: Key, place: tuple[Any, ...], is_rising: bool) -> Q:
    """Rows past a place; the first condition alone is what an index can walk."""
    side = "gt" if is_rising else "lt"
    (first, second), (at, tie) = key, place
    past = Q(**{f"{first}__{side}": at}) | Q(**{f"{second}__{side}": tie})
    return Q(**{f"{first}__{side}e": at}) & past
