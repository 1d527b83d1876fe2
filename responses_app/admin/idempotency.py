from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import quote
from django.db.models import QuerySet
from django.urls import reverse
from django.utils.html import format_html

from responses_app.admin.filters import OwnerFilter
from responses_app.admin.readonly import ReadOnlyAdmin
from responses_app.models import IdempotencyKey, Response


@admin.register(IdempotencyKey)
class IdempotencyKeyAdmin(ReadOnlyAdmin):
    """The response that a repeated request joins, and until when."""

    list_display = ("__str__", "owner", "of_response", "created_at", "expires_at")
    list_filter = (OwnerFilter,)
    list_prefetch_related = ("owner",)
    search_fields = ("key",)
    search_help_text = "A whole key, or the whole id of a response."
    ordering = ("-expires_at",)
    fields = (("key", "owner", "of_response"), ("created_at", "expires_at"), "digest")
    readonly_fields = ("of_response",)

    def search(self, rows: QuerySet[Any], term: str) -> QuerySet[Any]:
        if Response.objects.filter(pk=term).exists():
            return rows.filter(response_id=term)
        return rows.filter(key=term)

    @admin.display(description="Response")
    def of_response(self, key: IdempotencyKey) -> str:
        page = reverse("admin:responses_app_response_change", args=[quote(key.response_id)])
        return format_html(
            '<a href="{}" title="{}">{}…</a>', page, key.response_id, key.response_id[:13]
        )
