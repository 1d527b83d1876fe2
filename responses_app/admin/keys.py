from django.contrib import admin
from django.http import HttpRequest

from responses_app.models import ApiKey, Profile


@admin.register(ApiKey)
class ApiKeyAdmin(admin.ModelAdmin):
    list_display = ("name", "prefix", "owner", "created_at", "last_used_at", "revoked_at")
    list_select_related = ("owner",)
    readonly_fields = ("prefix", "created_at", "last_used_at")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False  # only `manage.py createkey` can show the secret


@admin.register(Profile)
class ProfileAdmin(admin.ModelAdmin):
    list_display = ("name", "provider", "upstream_model", "is_enabled")
