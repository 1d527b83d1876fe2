from typing import Any

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from responses_app.admin.readonly import ReadOnlyAdmin
from responses_app.models import Note

EXCERPT_CHARS = 100


@admin.register(Note)
class NoteAdmin(ReadOnlyAdmin):
    """What models wrote down; to delete one erases it."""

    list_display = ("excerpt", "kind", "owner", "session", "session_key", "created_at")
    list_prefetch_related = ("owner", "session")
    list_filter = ("kind",)
    search_fields = ("owner__username",)
    search_help_text = "The whole name of an owner."
    ordering = ("-pk",)

    def search(self, rows: QuerySet[Any], term: str) -> QuerySet[Any]:
        return rows.filter(owner__username=term)

    @admin.display(description="Note")
    def excerpt(self, note: Note) -> str:
        if len(note.text) <= EXCERPT_CHARS:
            return note.text
        return f"{note.text[:EXCERPT_CHARS]}…"

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return admin.ModelAdmin.has_delete_permission(self, request, obj)
