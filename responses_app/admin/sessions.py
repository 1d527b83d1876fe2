from django.contrib import admin

from responses_app.admin.readonly import ReadOnlyAdmin
from responses_app.models import Conversation, Session


@admin.register(Session)
class SessionAdmin(ReadOnlyAdmin):
    list_display = ("public_id", "owner", "source", "turn_count", "input_tokens", "output_tokens", "last_active_at")
    list_filter = ("source",)
    list_select_related = ("owner",)
    search_fields = ("public_id", "title")
    ordering = ("-last_active_at",)


@admin.register(Conversation)
class ConversationAdmin(ReadOnlyAdmin):
    list_display = ("id", "name", "owner", "created_at")
    list_select_related = ("owner",)
    search_fields = ("id", "name")
