from typing import Any, cast

from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.db.models import ManyToManyField, Model, QuerySet
from django.forms import CheckboxSelectMultiple
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from responses_app.admin.strict import StrictAdmin
from responses_app.admin.times import ReaderTimes
from responses_app.models import ApiKey
from responses_app.services.keys import revoke_key


@admin.register(ApiKey)
class ApiKeyAdmin(ReaderTimes, StrictAdmin):
    list_display = ("name", "prefix", "owner", "created_at", "last_used_at", "revoked_at")
    list_select_related = ("owner",)
    list_filter = (("revoked_at", admin.EmptyFieldListFilter), "created_at")
    search_fields = ("name", "prefix", "owner__username")
    fields = ("name", "owner", "profiles", "prefix", "created_at", "last_used_at", "revoked_at")
    readonly_fields = ("prefix", "created_at", "last_used_at", "revoked_at")
    # Django's widgets with a search have no names for screen readers.
    formfield_overrides = {ManyToManyField: {"widget": CheckboxSelectMultiple}}
    actions = ("revoke",)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False  # a revoked key still records its owner

    def get_fields(self, request: HttpRequest, obj: Model | None = None) -> Any:
        """Only a superuser makes keys for others: a key of a superuser may do everything."""
        if obj is None and not _is_superuser(request):
            return [name for name in self.fields if name != "owner"]
        return self.fields

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> list[Any]:
        """An owner never changes: the key would get access to everything of the new owner."""
        fields = super().get_readonly_fields(request, obj)
        if obj is None:
            return fields
        return ["owner", *fields]

    def save_model(self, request: HttpRequest, obj: ApiKey, form: Any, change: bool) -> None:
        if not change:
            if not _is_superuser(request):
                obj.owner = cast(User, request.user)
            obj.__dict__["shown_secret"] = obj.give_secret()  # for response_add()
        super().save_model(request, obj, form, change)

    def response_add(
        self, request: HttpRequest, obj: ApiKey, post_url_continue: str | None = None
    ) -> HttpResponse:
        """Shows the secret here: a message would put it in a cookie, a redirect in the log."""
        context = self.admin_site.each_context(request)
        context["opts"] = self.opts
        context["key"] = obj
        context["title"] = "The new key"
        context["secret"] = obj.__dict__.pop("shown_secret")
        return TemplateResponse(
            request,
            "admin/responses_app/apikey/secret.html",
            context,
            headers={"Cache-Control": "no-store"},
        )

    @admin.action(description="Revoke", permissions=["change"])
    def revoke(self, request: HttpRequest, chosen: QuerySet[ApiKey]) -> None:
        results = [revoke_key(key, cast(User, request.user)) for key in chosen]
        text = f"{results.count(True)} revoked."
        level = messages.SUCCESS
        skipped = results.count(False)
        if skipped:
            text += f" {skipped} skipped: they were revoked before."
            level = messages.WARNING
        self.message_user(request, text, level)


def _is_superuser(request: HttpRequest) -> bool:
    return bool(cast(User, request.user).is_superuser)
