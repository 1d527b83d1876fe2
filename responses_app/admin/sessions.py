from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import Exists, Model, OuterRef, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.text import Truncator

from responses_app.admin.actions import ResponseActions
from responses_app.admin.filters import OwnerFilter, SourceFilter
from responses_app.admin.readonly import ReadOnlyAdmin
from responses_app.admin.searching import HELP, search_conversations, search_sessions
from responses_app.admin.timeline import pretty_json, read_turns
from responses_app.models import Conversation, ConversationItem, Response, Session, opening_excerpt
from responses_app.services.conversations import resolved

TURNS_PER_PAGE = 50
SHOWN_ITEMS = 200
SHOWN_TITLE_CHARS = 60


@admin.register(Session)
class SessionAdmin(ResponseActions):
    list_display = (
        *("public_id", "about", "owner", "last_active_at", "turns"),
        *("tokens", "source"),
    )
    list_annotations: ClassVar[dict[str, Any]] = {"opening": opening_excerpt()}
    list_filter = (SourceFilter, OwnerFilter, "last_active_at")
    list_prefetch_related = ("owner",)
    search_fields = ("public_id",)
    search_help_text = HELP
    sortable_by = ("last_active_at",)
    ordering = ("-last_active_at",)
    change_form_template = "admin/responses_app/session/change_form.html"

    fieldsets = (
        (
            None,
            {
                "fields": (
                    ("public_id", "owner", "title", "source"),
                    ("parent", "fork_point"),
                    ("turn_count", "input_tokens", "output_tokens", "created_at", "last_active_at"),
                )
            },
        ),
    )
    actions = ("cancel", "fork", "export")

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """A session's page shows its responses."""
        return super().has_view_permission(request, obj) and self.has_view_responses_permission(
            request
        )

    def chosen_responses(self, chosen: QuerySet, action: str) -> QuerySet[Response]:
        """What an action on a session is about: what runs, the newest turn, or all turns."""
        turns = Response.objects.filter(session__in=chosen)
        if action == "cancel":
            return turns.open()
        if action != "fork":
            return turns
        later = Response.objects.filter(session=OuterRef("session"), turn__gt=OuterRef("turn"))
        usable = {"is_stored": True, "deleted_at__isnull": True}
        return turns.filter(~Exists(later.filter(**usable)), **usable)

    def search(self, rows: QuerySet[Any], term: str) -> QuerySet[Any]:
        return search_sessions(rows, term)

    @admin.display(description="Title, or how it began", empty_value="–")
    def about(self, session: Any) -> str | None:
        return session.title or (
            session.opening and Truncator(session.opening).chars(SHOWN_TITLE_CHARS)
        )

    @admin.display(description="Turns")
    def turns(self, session: Session) -> int:
        return session.turn_count

    @admin.display(description="Tokens in / out")
    def tokens(self, session: Session) -> str:
        return f"{session.input_tokens:,} / {session.output_tokens:,}"

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        told = (
            _timeline(int(object_id), request.GET.get("after", "")) if object_id.isdecimal() else {}
        )
        return super().change_view(request, object_id, form_url, {**told, **(extra_context or {})})


def _timeline(session_id: int, after: str) -> dict[str, Any]:
    """A page of turns in order, and the way to the pages beside it."""
    first = int(after) if after.isdecimal() and len(after) < 9 else 0
    turns = Response.objects.filter(session_id=session_id).order_by("turn")
    rows = list(turns.filter(turn__gt=first)[: TURNS_PER_PAGE + 1])
    page = rows[:TURNS_PER_PAGE]
    earlier = list(
        turns.filter(turn__lte=first)
        .order_by("-turn")
        .values_list("turn", flat=True)[: TURNS_PER_PAGE + 1]
    )
    return {
        "turns": read_turns(page),
        "next_after": page[-1].turn if len(rows) > TURNS_PER_PAGE else None,
        "earlier_after": None
        if not earlier
        else (0 if len(earlier) <= TURNS_PER_PAGE else earlier[-1]),
        "forks": Session.objects.filter(parent_id=session_id).order_by("pk")[:TURNS_PER_PAGE],
        "conversation": Conversation.objects.filter(session_id=session_id).first(),
    }


@admin.register(Conversation)
class ConversationAdmin(ReadOnlyAdmin):
    list_display = ("id", "name", "owner", "session", "created_at")
    list_filter = (OwnerFilter, "created_at")
    list_prefetch_related = ("owner", "session")
    search_fields = ("id",)
    search_help_text = "A whole id or name, or an owner's name."
    sortable_by = ("created_at",)
    ordering = ("-created_at",)
    fields = (("id", "name", "owner"), ("session", "created_at"), "metadata", "items_shown")
    readonly_fields = ("items_shown",)

    def search(self, rows: QuerySet[Any], term: str) -> QuerySet[Any]:
        return search_conversations(rows, term)

    @admin.display(description="Items")
    def items_shown(self, conversation: Conversation) -> str:
        """The last of them, as the next turn would be given them."""
        rows = ConversationItem.objects.filter(conversation=conversation).order_by("-position")[
            :SHOWN_ITEMS
        ]
        return format_html("<pre>{}</pre>", pretty_json(resolved(list(reversed(rows)))))
