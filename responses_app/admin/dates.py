"""Lists by date: years, months and days as links, and a filter between two days."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ChangeList
from django.db.models import DateTimeField, Model, QuerySet
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime
from django.utils.formats import date_format
from django.utils.html import format_html_join

from responses_app.admin.searching import FEW
from responses_app.admin.times import time_element

ONE_DAY = timedelta(days=1)


class DateRangeFilter(admin.DateFieldListFilter):
    """Django's choices, and a form for the first and the last day."""

    template = "admin/responses_app/date_filter.html"

    def __init__(
        self,
        field: Any,
        request: HttpRequest,
        params: dict[str, Any],
        model: type[Model],
        model_admin: Any,
        field_path: str,
    ) -> None:
        self.from_name = f"{field_path}__from"
        self.to_name = f"{field_path}__to"
        self.first_day = str(params.pop(self.from_name, [""])[-1])
        self.last_day = str(params.pop(self.to_name, [""])[-1])
        self.kept_params: list[tuple[str, str]] = []
        super().__init__(field, request, params, model, model_admin, field_path)

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        rows = super().queryset(request, queryset)
        assert rows is not None
        return self.between_days(rows, self.field_path)

    def between_days(self, rows: QuerySet[Any], column: str) -> QuerySet[Any]:
        if self.first_day:
            rows = rows.filter((f"{column}__gte", _start_of(self.first_day)))
        if self.last_day:
            rows = rows.filter((f"{column}__lt", _start_of(self.last_day) + ONE_DAY))
        return rows

    def choices(self, changelist: ChangeList) -> Iterator[Any]:
        for name, values in changelist.get_filters_params().items():
            if not name.startswith(self.field_generic):
                self.kept_params += [(name, value) for value in values]
        if changelist.query:
            self.kept_params.append(("q", changelist.query))
        is_chosen = False
        for number, choice in enumerate(super().choices(changelist)):
            if number == 0 and (self.first_day or self.last_day):
                choice["selected"] = False
            is_chosen |= bool(choice["selected"])
            yield choice
        if self.used_parameters and not is_chosen:
            yield self._exact_choice(changelist)

    def given_params(self) -> list[tuple[str, Any]]:
        """The last value of each parameter, as of every filter."""
        used: dict[str, Any] = self.used_parameters
        return [(name, values[-1]) for name, values in used.items()]

    def _exact_choice(self, changelist: ChangeList) -> dict[str, Any]:
        """Two times that a link of the dashboard names."""
        times = [(_shown_time(given),) for _, given in self.given_params()]
        return {
            "selected": True,
            "query_string": changelist.get_query_string(),
            "display": format_html_join(" to ", "{}", times),
        }


class EndedFilter(DateRangeFilter):
    """By the time of the end, which the list is not sorted by. It has to be the last filter."""

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """A few rows are found first and then sorted; of many, each page of the list has some."""
        rows = super().queryset(request, queryset)
        if not (self.used_parameters or self.first_day or self.last_day):
            return rows
        ids = list(rows.order_by().values_list("pk", flat=True)[: FEW + 1])
        if len(ids) > FEW:
            return self._along_the_list(queryset)
        return queryset.filter(pk__in=ids)

    def _along_the_list(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """By an expression: with the column, SQLite would sort all rows that ended then."""
        rows = queryset.alias(ended_at=Coalesce(self.field_path, self.field_path))
        ends = []
        if self.last_day:
            ends.append(_start_of(self.last_day) + ONE_DAY)
        for name, given in self.given_params():
            rows = rows.filter((name.replace(self.field_path, "ended_at", 1), given))
            if name == self.lookup_kwarg_until:
                ends.append(DateTimeField().to_python(given))
        for until in ends:
            # Later rows are skipped. The clocks of two hosts differ by less than a day.
            rows = rows.filter(created_at__lt=until + ONE_DAY)
        return self.between_days(rows, "ended_at")


def _shown_time(given: Any) -> str:
    at = parse_datetime(str(given))
    if at is None:
        return str(given)
    try:
        return time_element(at)
    except OverflowError:  # in UTC, its year is 0 or 10000
        return str(given)


def _start_of(given: str) -> datetime:
    try:
        day = parse_date(given)
    except ValueError as error:
        raise IncorrectLookupParameters(error) from error
    if day is None:
        raise IncorrectLookupParameters(given)
    return timezone.make_aware(datetime(day.year, day.month, day.day))


@dataclass(frozen=True)
class DateLink:
    title: str
    link: str = ""


@dataclass(frozen=True)
class DateLinks:
    back: DateLink | None
    choices: list[DateLink]


def date_links(changelist: ChangeList) -> DateLinks | None:
    """The periods between the first and the last row of the table.

    Django's own hierarchy would read the date of every row that the list has.
    """
    name = str(changelist.date_hierarchy)
    found = _first_and_last(changelist.model, name)
    if found is None:
        return None
    first, last = found
    links = _Links(changelist, name)
    year = _number(changelist, f"{name}__year")
    month = _number(changelist, f"{name}__month")
    day = _number(changelist, f"{name}__day")
    if year and month and day:
        shown = links.title(date(year, month, day))
        return DateLinks(links.month(date(year, month, 1)), [shown])
    if year and month:
        days = [one for one in _days(year, month) if first <= one <= last]
        return DateLinks(links.year(year), [links.day(one) for one in days])
    if year:
        return DateLinks(links.everything(), links.months(year, first, last))
    if first.year == last.year:
        return DateLinks(None, links.months(first.year, first, last))
    return DateLinks(None, [links.year(one) for one in range(first.year, last.year + 1)])


def _number(changelist: ChangeList, name: str) -> int | None:
    given = changelist.params.get(name)
    if not given:
        return None
    try:
        return int(given)
    except ValueError as error:
        raise IncorrectLookupParameters(error) from error


class _Links:
    def __init__(self, changelist: ChangeList, name: str) -> None:
        self._changelist = changelist
        self._name = name

    def everything(self) -> DateLink:
        return DateLink("All dates", self._query())

    def year(self, year: int) -> DateLink:
        return DateLink(str(year), self._query(year=year))

    def month(self, month: date) -> DateLink:
        link = self._query(year=month.year, month=month.month)
        return DateLink(date_format(month, "YEAR_MONTH_FORMAT"), link)

    def months(self, year: int, first: date, last: date) -> list[DateLink]:
        """Those of the year that the table has rows of, or may have."""
        months = [date(year, number, 1) for number in range(1, 13)]
        return [self.month(one) for one in months if first.replace(day=1) <= one <= last]

    def day(self, day: date) -> DateLink:
        link = self._query(year=day.year, month=day.month, day=day.day)
        return DateLink(date_format(day, "MONTH_DAY_FORMAT"), link)

    def title(self, day: date) -> DateLink:
        return DateLink(date_format(day, "MONTH_DAY_FORMAT"))

    def _query(self, **parts: int) -> str:
        new = {f"{self._name}__{part}": value for part, value in parts.items()}
        return str(self._changelist.get_query_string(new, [f"{self._name}__"]))


def _first_and_last(model: type[Model], name: str) -> tuple[date, date] | None:
    times = model._default_manager.values_list(name, flat=True)
    first = times.order_by(name).first()
    last = times.order_by(f"-{name}").first()
    if first is None or last is None:
        return None
    return timezone.localtime(first).date(), timezone.localtime(last).date()


def _days(year: int, month: int) -> Iterator[date]:
    day = date(year, month, 1)
    while day.month == month:
        yield day
        day += ONE_DAY
