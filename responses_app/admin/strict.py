"""Addresses and forms with values that no column can hold: a note, never an error of the server."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from responses_app.admin.paging import StrictChangeList

NOT_A_KEY = "Nothing was done: a chosen row has a key that no row can have."


class StrictAdmin(admin.ModelAdmin):
    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[StrictChangeList]:
        return StrictChangeList

    def response_action(
        self, request: HttpRequest, queryset: QuerySet[Any], *location: Any
    ) -> HttpResponse | None:
        chosen = request.POST.getlist(ACTION_CHECKBOX_NAME)
        if all(self._may_be_key(key) for key in chosen):
            return super().response_action(request, queryset, *location)
        self.message_user(request, NOT_A_KEY, messages.ERROR)
        return None

    def _may_be_key(self, key: str) -> bool:
        """The validators of a number know its range; those of a text know no NUL."""
        try:
            self.opts.pk.clean(key, None)
        except ValidationError:
            return False
        return "\0" not in key
