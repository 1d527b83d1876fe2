from typing import Any, ClassVar

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.text import Truncator

from responses_app.admin.actions import ResponseActions
from responses_app.admin.dates import DateRangeFilter, EndedFilter
from responses_app.admin.filters import (
    ErrorFilter,
    KeyFilter,
    ModelFilter,
    OwnerFilter,
    StatusFilter,
    ToolFilter,
    WorkFilter,
)
from responses_app.admin.readonly import badge
from responses_app.admin.searching import HELP, search_responses
from responses_app.admin.timeline import pretty_json, read_turns
from responses_app.models import Response, question_excerpt

SHOWN_ID_CHARS = 13  # enough to distinguish ids; the whole id is in the tooltip
SHOWN_TITLE_CHARS = 60
SHOWN_SESSION_CHARS = 14


@admin.register(Response)
class ResponseAdmin(ResponseActions):
    list_display = (
        "short_id",
        "state",
        "created_at",
        "asked",
        "in_session",
        "owner",
        "took",
        "model",
        "kind",
    )
    list_annotations: ClassVar[dict[str, Any]] = {"asked": question_excerpt()}
    list_filter = (
        ("status", StatusFilter),
        WorkFilter,
        "kind",
        ModelFilter,
        OwnerFilter,
        KeyFilter,
        ErrorFilter,
        ToolFilter,
        ("created_at", DateRangeFilter),
        ("finished_at", EndedFilter),
    )
    date_hierarchy = "created_at"
    list_prefetch_related = ("owner", "session")
    list_defer = (
        "request",
        "output",
        "provider_state",
        "error",
        "usage",
        "ignored",
        "protocol_deviations",
    )
    search_fields = ("id",)  # shows the box; search_responses() does the search
    search_help_text = HELP
    sortable_by = ("created_at",)
    ordering = ("-created_at",)
    change_form_template = "admin/responses_app/response/change_form.html"
    fieldsets = (
        ("Session", {"fields": (("owner", "session", "turn"), ("previous", "conversation"))}),
        (
            "Work",
            {
                "fields": (
                    ("created_at", "started_at", "finished_at", "accessed_at"),
                    ("attempt", "crashes", "lease_owner", "lease_until", "parked_until"),
                    (
                        "is_stored",
                        "is_background",
                        "waits_for_turn",
                        "on_disconnect",
                        "cancel_requested_at",
                    ),
                    ("last_position", "last_sequence", "is_log_merged", "deleted_at"),
                )
            },
        ),
        (
            "Request",
            {
                "fields": (
                    "request_shown",
                    "ignored",
                    "protocol_deviations",
                    "tool_items",
                    "client_tools",
                    "approvals",
                    "reasoning_form",
                ),
                "classes": ("collapse",),
            },
        ),
    )
    readonly_fields = ("request_shown",)

    def search(self, rows: QuerySet[Any], term: str) -> QuerySet[Any]:
        return search_responses(rows, term)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        ids = [object_id, unquote(object_id)]
        row = Response.objects.select_related("session").filter(pk__in=ids).first()
        context = {"turn": None} | (extra_context or {})
        if row is not None:
            context["turn"] = read_turns([row])[0]
        return super().change_view(request, object_id, form_url, context)

    @admin.display(description="Id")
    def short_id(self, row: Response) -> str:
        return format_html('<span title="{}">{}…</span>', row.pk, row.pk[:SHOWN_ID_CHARS])

    @admin.display(description="Status", ordering="status")
    def state(self, row: Response) -> str:
        return badge(row.status)

    @admin.display(description="Asked", empty_value="–")
    def asked(self, row: Any) -> str | None:
        return row.asked and Truncator(row.asked).chars(SHOWN_TITLE_CHARS)

    @admin.display(description="Session")
    def in_session(self, row: Response) -> str:
        page = reverse("admin:responses_app_session_change", args=[row.session_id])
        name = Truncator(str(row.session)).chars(SHOWN_SESSION_CHARS)
        link = format_html('<a href="{}" title="{}">{}</a>', page, row.session, name)
        return format_html("<bdi>{}</bdi>, {}", link, row.turn)

    @admin.display(description="Took")
    def took(self, row: Response) -> str:
        if row.started_at is None or row.finished_at is None:
            return "–"
        return f"{(row.finished_at - row.started_at).total_seconds():.2f} s"

    @admin.display(description="Request")
    def request_shown(self, row: Response) -> str:
        return format_html("<pre>{}</pre>", pretty_json(row.request))
