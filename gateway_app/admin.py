from django.contrib import admin

from gateway_app.models import RuntimeProcess
from responses_app.admin.readonly import ReadOnlyAdmin


@admin.register(RuntimeProcess)
class RuntimeProcessAdmin(ReadOnlyAdmin):
    list_display = ("role", "host", "pid", "state", "active_responses", "heartbeat_at", "exit_reason")
    list_filter = ("state", "role")
    ordering = ("-heartbeat_at",)
