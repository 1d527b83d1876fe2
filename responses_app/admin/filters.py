"""Filters whose choices are found without reading the filtered table."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.contrib.auth.models import User
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from responses_app.admin.searching import with_rows
from responses_app.models import Kind, Response, ToolEvent, work_states
from responses_app.models.distinct import distinct_values
from responses_app.services.conversations import SOURCE
from responses_app.services.keys import actor_names
from responses_app.services.profiles import DEFAULT_NAMES, default_model, profile_names

MAX_CHOICES = 200


class OneValueFilter(admin.SimpleListFilter):
    """``parameter_name`` equals the choice. The URL may also name a value that is not listed."""

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        if value is None:
            return queryset
        return queryset.filter(Q((str(self.parameter_name), value)))

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(name, name) for name in self.names()]

    @abstractmethod
    def names(self) -> list[str]:
        """The listed choices."""


class StatusFilter(admin.ChoicesFieldListFilter):
    """Its choices in words: stored names have underscores."""

    def choices(self, changelist: ChangeList) -> Iterator[Any]:
        for choice in super().choices(changelist):
            yield choice | {"display": str(choice["display"]).replace("_", " ")}


class OwnerFilter(OneValueFilter):
    title = "owner"
    parameter_name = "owner"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """By the owner's id: with a join, no index would serve both the filter and the order."""
        if self.value() is None:
            return queryset
        owner = User.objects.filter(username=self.value()).first()
        if owner is None:
            return queryset.none()
        return queryset.filter(owner_id=owner.pk)

    def names(self) -> list[str]:
        owners = User.objects.filter(Q(api_keys__isnull=False) | Q(is_superuser=True)).distinct()
        return list(owners.order_by("username").values_list("username", flat=True)[:MAX_CHOICES])


class KeyFilter(OneValueFilter):
    title = "key or operator"
    parameter_name = "requested_by"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        actors = self.names()
        named = actor_names(actors)
        return [(actor, named.get(actor, actor)) for actor in actors]

    def names(self) -> list[str]:
        actors = distinct_values(Response, "requested_by", MAX_CHOICES)
        return [actor for actor in actors if actor]


class ErrorFilter(OneValueFilter):
    title = "error"
    parameter_name = "error_code"

    def names(self) -> list[str]:
        return distinct_values(Response, "error_code", MAX_CHOICES)


class WorkFilter(OneValueFilter):
    """What responses do that have not ended, as health and the dashboard count them."""

    title = "work"
    parameter_name = "work"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        state = work_states().get(self.value() or "")
        if state is None:
            return queryset
        return queryset.filter(state, finished_at__isnull=True)

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(name, name.replace("_", " ")) for name in self.names()]

    def names(self) -> list[str]:
        return list(work_states())


class WaitingCallFilter(OneValueFilter):
    title = "waiting"
    parameter_name = "waits"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() is None:
            return queryset
        return queryset.filter(pk__in=ToolEvent.objects.for_operators().values("pk"))

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("yes", "for a decision")]

    def names(self) -> list[str]:
        return ["yes"]


class ToolNameFilter(OneValueFilter):
    title = "tool"
    parameter_name = "name"

    def names(self) -> list[str]:
        return distinct_values(ToolEvent, "name", MAX_CHOICES)


class ToolFilter(OneValueFilter):
    title = "tool"
    parameter_name = "tool"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() is None:
            return queryset
        return with_rows(queryset, ToolEvent.objects.filter(name=self.value()))

    def names(self) -> list[str]:
        return distinct_values(ToolEvent, "name", MAX_CHOICES)


class ModelFilter(OneValueFilter):
    title = "model"
    parameter_name = "model"

    def names(self) -> list[str]:
        names = [default_model()]
        names.extend(DEFAULT_NAMES)
        names.extend(profile_names()[:MAX_CHOICES])
        return list(dict.fromkeys(names))  # each once


class SourceFilter(OneValueFilter):
    title = "source"
    parameter_name = "source"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(name, name.replace("_", " ")) for name in self.names()]

    def names(self) -> list[str]:
        return [*Kind.values, SOURCE, *settings.HERMES_PLATFORM_ADAPTERS]


class PlatformFilter(OneValueFilter):
    title = "platform"
    parameter_name = "platform"

    def names(self) -> list[str]:
        return list(settings.HERMES_PLATFORM_ADAPTERS)
