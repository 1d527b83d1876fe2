from collections.abc import Callable
from functools import partial
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import quote
from django.contrib.auth.models import User
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.text import Truncator

from responses_app.admin.filters import PlatformFilter
from responses_app.admin.readonly import ReadOnlyAdmin, badge
from responses_app.database import database
from responses_app.models import InboxMessage, OutboxMessage, PlatformChat
from responses_app.services.audit import record

SHOWN_CHARS = 60
MAX_CHOSEN = 1000


class PlatformAdmin(ReadOnlyAdmin):
    """Rows of messaging platforms. Actions go through the writer, as all writes beside streams."""

    def act(
        self,
        request: HttpRequest,
        chosen: QuerySet[Any],
        change: Callable[[QuerySet[Any]], int],
        done: str,
    ) -> None:
        assert isinstance(request.user, User)
        rows = list(chosen[:MAX_CHOSEN])
        step = partial(_change_and_record, rows, change, request.user, done)
        count: int = database.submit(step).result()
        level = messages.SUCCESS
        text = f"{count} {done}."
        if count < len(rows):
            level = messages.WARNING
            text += f" {len(rows) - count} skipped."
        self.message_user(request, text, level)

    @admin.display(description="Response")
    def of_response(self, row: InboxMessage | OutboxMessage) -> str:
        if row.response_id is None:
            return "–"
        page = reverse("admin:responses_app_response_change", args=[quote(row.response_id)])
        return format_html('<a href="{}">{}…</a>', page, row.response_id[:13])

    @admin.display(description="Status")
    def shown_status(self, row: InboxMessage | OutboxMessage) -> str:
        return badge(row.status)

    @admin.display(description="Text")
    def excerpt(self, row: InboxMessage | OutboxMessage) -> str:
        return Truncator(row.text).chars(SHOWN_CHARS)

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Texts of people are content of responses, or become it."""
        if not self.has_view_responses_permission(request):
            return False
        return super().has_view_permission(request, obj)


def _change_and_record(
    rows: list[Any], change: Callable[[QuerySet[Any]], int], actor: User, done: str
) -> int:
    count = 0
    for row in rows:
        if change(type(row).objects.filter(pk=row.pk)):
            record(actor, row, f"{done.capitalize()}.")
            count += 1
    return count


@admin.register(PlatformChat)
class PlatformChatAdmin(PlatformAdmin):
    list_display = ("platform", "chat_id", "name", "is_group", "is_paused", "session_page")
    list_filter = (PlatformFilter, "is_paused")
    search_fields = ("chat_id",)
    search_help_text = "The whole id of a chat."
    ordering = ("-pk",)
    actions = ("pause", "resume")

    def search(self, rows: QuerySet[Any], term: str) -> QuerySet[Any]:
        return rows.filter(chat_id=term)

    @admin.display(description="Session")
    def session_page(self, chat: PlatformChat) -> str:
        if chat.session_id is None:
            return "–"
        page = reverse("admin:responses_app_session_change", args=[chat.session_id])
        return format_html('<a href="{}">open</a>', page)

    @admin.action(description="Pause: answer no more messages", permissions=["operate"])
    def pause(self, request: HttpRequest, chosen: QuerySet[PlatformChat]) -> None:
        self.act(request, chosen, _pause, "paused")

    @admin.action(description="Answer again", permissions=["operate"])
    def resume(self, request: HttpRequest, chosen: QuerySet[PlatformChat]) -> None:
        self.act(request, chosen, _resume, "resumed")


def _pause(rows: QuerySet[PlatformChat]) -> int:
    return rows.filter(is_paused=False).update(is_paused=True)


def _resume(rows: QuerySet[PlatformChat]) -> int:
    return rows.filter(is_paused=True).update(is_paused=False)


@admin.register(InboxMessage)
class InboxMessageAdmin(PlatformAdmin):
    list_display = (
        "message_id",
        "platform",
        "chat",
        "shown_status",
        "excerpt",
        "reason",
        "of_response",
        "received_at",
    )
    list_filter = ("status", PlatformFilter)
    list_prefetch_related = ("chat",)
    search_fields = ("message_id",)
    search_help_text = "The platform's id of a message."
    ordering = ("-received_at",)
    actions = ("retry", "discard")

    def search(self, rows: QuerySet[Any], term: str) -> QuerySet[Any]:
        return rows.filter(message_id=term)

    @admin.action(description="Try again those that failed", permissions=["operate"])
    def retry(self, request: HttpRequest, chosen: QuerySet[InboxMessage]) -> None:
        self.act(request, chosen, _retry, "tried again")

    @admin.action(description="Discard those that failed", permissions=["operate"])
    def discard(self, request: HttpRequest, chosen: QuerySet[InboxMessage]) -> None:
        self.act(request, chosen, _discard, "discarded")


@admin.register(OutboxMessage)
class OutboxMessageAdmin(PlatformAdmin):
    """With the dead letters: the status filter shows them."""

    list_display = (
        "key",
        "platform",
        "chat",
        "shown_status",
        "attempts",
        "error",
        "excerpt",
        "of_response",
        "created_at",
    )
    list_filter = ("status", PlatformFilter)
    list_prefetch_related = ("chat",)
    search_fields = ("key",)
    search_help_text = "The whole key, or the platform's id of a message."
    ordering = ("-created_at",)
    actions = ("retry", "discard")

    def search(self, rows: QuerySet[Any], term: str) -> QuerySet[Any]:
        found = rows.filter(key=term)
        if found.exists():
            return found
        return rows.filter(platform_message_id=term)

    @admin.action(description="Send dead letters again", permissions=["operate"])
    def retry(self, request: HttpRequest, chosen: QuerySet[OutboxMessage]) -> None:
        self.act(request, chosen, _retry, "tried again")

    @admin.action(description="Discard dead letters", permissions=["operate"])
    def discard(self, request: HttpRequest, chosen: QuerySet[OutboxMessage]) -> None:
        self.act(request, chosen, _discard, "discarded")


def _retry(rows: Any) -> int:
    count: int = rows.retry()
    return count


def _discard(rows: Any) -> int:
    count: int = rows.discard()
    return count
