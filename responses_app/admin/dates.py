"""Lists by date: years, months and days as links, and a filter between two days."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ChangeList
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.dateparse import parse_date
from django.utils.formats import date_format

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
        if self.first_day:
            rows = rows.filter((f"{self.field_path}__gte", _start_of(self.first_day)))
        if self.last_day:
            rows = rows.filter((f"{self.field_path}__lt", _start_of(self.last_day) + ONE_DAY))
        return rows

    def choices(self, changelist: ChangeList) -> Iterator[Any]:
        for name, values in changelist.get_filters_params().items():
            if not name.startswith(self.field_generic):
                self.kept_params += [(name, value) for value in values]
        if changelist.query:
            self.kept_params.append(("q", changelist.query))
        for number, choice in enumerate(super().choices(changelist)):
            if number == 0 and (self.first_day or self.last_day):
                choice["selected"] = False
            yield choice


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
    given = [changelist.params.get(f"{name}__{part}") for part in ("year", "month", "day")]
    year, month, day = [int(value) if value else None for value in given]
    links = _Links(changelist, name)
    if year and month:
        days = [one for one in _days(year, month) if first <= one <= last]
        choices = [links.day(one) for one in days]
        if day:
            return DateLinks(
                links.month(date(year, month, 1)), [links.title(date(year, month, day))]
            )
        return DateLinks(links.year(year), choices)
    if year or first.year == last.year:
        months = [date(year or first.year, number, 1) for number in range(1, 13)]
        choices = [links.month(one) for one in months if first.replace(day=1) <= one <= last]
        return DateLinks(links.everything() if year else None, choices)
    return DateLinks(None, [links.year(one) for one in range(first.year, last.year + 1)])


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
