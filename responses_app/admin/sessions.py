from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import Exists, Model, OuterRef, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.text import Truncator

from responses_app.admin.actions import ResponseActions
from responses_app.admin.dates import DateRangeFilter
from responses_app.admin.filters import OwnerFilter, SourceFilter
from responses_app.admin.readonly import ReadOnlyAdmin
from responses_app.admin.searching import HELP, search_conversations, search_sessions
from responses_app.admin.timeline import pretty_json, read_turns
from responses_app.models import Conversation, ConversationItem, Response, Session, opening_excerpt
from responses_app.services.conversations import resolved

TURNS_PER_PAGE = 50
SHOWN_ITEMS = 200
SHOWN_TITLE_CHARS = 60
MAX_ID_DIGITS = 18  # a number of 19 may be too large for the column


@admin.register(Session)
class SessionAdmin(ResponseActions):
    list_display = ("public_id", "about", "owner", "last_active_at", "turns", "tokens", "source")
    list_annotations: ClassVar[dict[str, Any]] = {"opening": opening_excerpt()}
    list_filter = (SourceFilter, OwnerFilter, ("last_active_at", DateRangeFilter))
    date_hierarchy = "last_active_at"
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
        if not self.has_view_responses_permission(request):
            return False
        return super().has_view_permission(request, obj)

    def chosen_responses(self, chosen: QuerySet, action: str) -> QuerySet[Response]:
        """Cancel acts on the running turns, fork on the newest one, every other action on all."""
        turns = Response.objects.filter(session__in=chosen)
        if action == "cancel":
            return turns.open()
        if action != "fork":
            return turns
        is_usable = Q(is_stored=True, deleted_at__isnull=True)
        later = Response.objects.filter(session=OuterRef("session"), turn__gt=OuterRef("turn"))
        return turns.filter(is_usable, ~Exists(later.filter(is_usable)))

    def search(self, rows: QuerySet[Any], term: str) -> QuerySet[Any]:
        return search_sessions(rows, term)

    @admin.display(description="Title, or how it began", empty_value="–")
    def about(self, session: Any) -> str | None:
        text = session.title or session.opening
        return text and Truncator(text).chars(SHOWN_TITLE_CHARS)

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
        context = extra_context or {}
        if object_id.isdecimal() and len(object_id) <= MAX_ID_DIGITS:
            context = _timeline(int(object_id), request.GET.get("after", "")) | context
        return super().change_view(request, object_id, form_url, context)


def _timeline(session_id: int, after: str) -> dict[str, Any]:
    """A page of turns in order, and the cursors of the pages before and after it."""
    first = 0
    if after.isdecimal() and len(after) < 9:
        first = int(after)
    turns = Response.objects.filter(session_id=session_id).order_by("turn")
    rows = list(turns.filter(turn__gt=first)[: TURNS_PER_PAGE + 1])
    page = rows[:TURNS_PER_PAGE]
    next_after = None
    if len(rows) > TURNS_PER_PAGE:
        next_after = page[-1].turn
    return {
        "turns": read_turns(page),
        "next_after": next_after,
        "earlier_after": _earlier_after(turns.filter(turn__lte=first)),
        "forks": Session.objects.filter(parent_id=session_id).order_by("pk")[:TURNS_PER_PAGE],
        "conversation": Conversation.objects.filter(session_id=session_id).first(),
    }


def _earlier_after(earlier: QuerySet[Response]) -> int | None:
    """The cursor of the page before this one; None where this is the first."""
    newest_first = earlier.order_by("-turn").values_list("turn", flat=True)
    turns = list(newest_first[: TURNS_PER_PAGE + 1])
    if not turns:
        return None
    if len(turns) <= TURNS_PER_PAGE:
        return 0
    return turns[-1]


@admin.register(Conversation)
class ConversationAdmin(ReadOnlyAdmin):
    list_display = ("id", "name", "owner", "session", "created_at")
    list_filter = (OwnerFilter, ("created_at", DateRangeFilter))
    date_hierarchy = "created_at"
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
        """The last items, as the next turn would get them."""
        rows = ConversationItem.objects.filter(conversation=conversation).order_by("-position")
        last = list(rows[:SHOWN_ITEMS])
        last.reverse()
        return format_html("<pre>{}</pre>", pretty_json(resolved(last)))
