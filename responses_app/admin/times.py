"""Times as elements: UTC with the zone named, which a script turns into the reader's own zone."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any, cast

from django.contrib import admin
from django.contrib.humanize.templatetags.humanize import naturaltime
from django.core.exceptions import FieldDoesNotExist
from django.db.models import DateTimeField, Model
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

NO_TIME = "–"


def utc_text(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def time_element(at: datetime | None) -> SafeString | str:
    if not at:
        return NO_TIME
    text = utc_text(at)
    return format_html('<time datetime="{}" title="{}">{}</time>', at.isoformat(), text, text)


def relative_time(at: datetime | None) -> SafeString | str:
    """How long ago it was; the time itself is in the tooltip."""
    if not at:
        return NO_TIME
    element = '<time datetime="{}" title="{}" data-relative>{}</time>'
    return format_html(element, at.isoformat(), utc_text(at), naturaltime(at))


class ReaderTimes(admin.ModelAdmin):
    """Shows the times of lists and of read-only fields as elements: Django renders plain text."""

    def get_list_display(self, request: HttpRequest) -> list[Any]:
        return self._with_times(super().get_list_display(request))

    def get_sortable_by(self, request: HttpRequest) -> list[Any]:
        return self._with_times(super().get_sortable_by(request))

    def get_fieldsets(self, request: HttpRequest, obj: Model | None = None) -> list[Any]:
        fieldsets = []
        for title, options in super().get_fieldsets(request, obj):
            shown = dict(options)
            shown["fields"] = self._with_times(options["fields"])
            fieldsets.append((title, shown))
        return fieldsets

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> list[Any]:
        return self._with_times(super().get_readonly_fields(request, obj))

    def _with_times(self, names: Sequence[Any]) -> list[Any]:
        """Fields on one line are a tuple within the sequence."""
        shown: list[Any] = []
        for name in names:
            if isinstance(name, list | tuple):
                shown.append(tuple(self._with_times(name)))
            elif _is_time(self.model, name):
                shown.append(_column(cast(type[Model], self.model), name))
            else:
                shown.append(name)
        return shown


def _is_time(model: type[Model], name: Any) -> bool:
    if not isinstance(name, str):
        return False
    try:
        field = model._meta.get_field(name)
    except FieldDoesNotExist:
        return False
    return isinstance(field, DateTimeField)


@cache  # the admin compares the columns of a list with those that it may sort by
def _column(model: type[Model], name: str) -> Callable[[Any], SafeString | str]:
    def shown_time(row: Any) -> SafeString | str:
        return time_element(getattr(row, name))

    title = str(model._meta.get_field(name).verbose_name)  # type: ignore[union-attr]
    column = admin.display(shown_time, description=title, ordering=name)
    column.__name__ = name  # the class of its cells
    return column
