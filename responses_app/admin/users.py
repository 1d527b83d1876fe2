from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import User
from django.db.models import Model
from django.http import HttpRequest

admin.site.unregister(User)
ERASING = (
    "A user who owns something, or has acted here, can't be deleted on this page. "
    "The command manage.py erase_owner NAME erases a user with everything; "
    "a user who is not active can't log in."
)


@admin.register(User)
class OwnerAdmin(UserAdmin):
    """Django deletes all rows of an owner in one transaction, and would leave the files of tools."""

    def get_fieldsets(self, request: HttpRequest, obj: Model | None = None) -> Any:
        fieldsets = super().get_fieldsets(request, obj)
        if obj is None:
            return fieldsets
        (title, options), *others = fieldsets
        return [(title, {**options, "description": ERASING}), *others]

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """A list has no action for it either: it could select any number of owners."""
        if obj is None or _is_referenced(obj):
            return False
        return super().has_delete_permission(request, obj)


def _is_referenced(user: Model) -> bool:
    for relation in User._meta.related_objects:
        rows = relation.related_model._base_manager.filter((relation.field.name, user))
        if rows.exists():
            return True
    return False
