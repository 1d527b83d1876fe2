from django.contrib import admin

from responses_app.admin.readonly import ReadOnlyAdmin
from responses_app.models import InputItem, Response, ToolEvent


class InputItemInline(admin.TabularInline):
    model = InputItem
    extra = 0
    can_delete = False


class ToolEventInline(admin.TabularInline):
    model = ToolEvent
    extra = 0
    can_delete = False


@admin.register(Response)
class ResponseAdmin(ReadOnlyAdmin):
    list_display = ("id", "status", "kind", "model", "owner", "session", "turn", "attempt", "created_at")
    list_filter = ("status", "kind", "model")
    list_select_related = ("owner", "session")
    search_fields = ("id", "session__public_id")
    ordering = ("-created_at",)
    inlines = (InputItemInline, ToolEventInline)


@admin.register(ToolEvent)
class ToolEventAdmin(ReadOnlyAdmin):
    list_display = ("name", "status", "response", "attempt", "started_at", "finished_at")
    list_filter = ("status", "name")
    search_fields = ("response__id", "call_id")
