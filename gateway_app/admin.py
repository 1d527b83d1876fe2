from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin
from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.db.models import URLField
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html

from gateway_app.config.model_options import check_only_options
from gateway_app.config.profiles import models_of, read_toolset
from gateway_app.models import RuntimeProcess
from gateway_app.runtime.agents import Agent, agent_of
from gateway_app.runtime.toolsets import check_toolset
from responses_app.admin.readonly import ReadOnlyAdmin, badge
from responses_app.admin.strict import StrictAdmin
from responses_app.agent_profiles import NO_FALLBACKS, AgentProfile
from responses_app.models import Profile
from responses_app.services.profiles import default_model, profile_of_row


@admin.register(RuntimeProcess)
class RuntimeProcessAdmin(ReadOnlyAdmin):
    list_display = (
        "role",
        "host",
        "pid",
        "shown_state",
        "active_responses",
        "heartbeat_at",
        "exit_reason",
    )
    list_filter = ("state", "role")
    ordering = ("-heartbeat_at",)

    @admin.display(description="State")
    def shown_state(self, process: RuntimeProcess) -> str:
        return badge(process.state)


class ProfileForm(forms.ModelForm):
    """As strict as config.yaml: errors appear in the form, not in the first client's response."""

    class Meta:
        help_texts = {
            "provider": f"One of {', '.join(settings.HERMES_PROVIDERS)}. "
            "Empty means the server's default provider.",
            "base_url": "Empty means the address of the provider, or of the server's model "
            "if no provider is set.",
            "fallback_models": "Models to try when this one can't be reached. [] means those of "
            f'the server, "{NO_FALLBACKS}" that no other model is tried.',
        }

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if self.errors:
            return cleaned
        values = dict(cleaned)
        if cleaned.get("model_options") is None:  # an empty field
            values["model_options"] = cleaned["model_options"] = {}
        if cleaned.get("fallback_models") is None:
            values["fallback_models"] = cleaned["fallback_models"] = []
        try:
            check_only_options(values["model_options"], "model_options")
            location = f"Profile {values['name']}"
            check_toolset(read_toolset(values, location), location)
            profile = profile_of_row(Profile(**values))
            models_of(profile, settings.HERMES_MODELS, tuple(settings.HERMES_PROVIDERS))
        except ImproperlyConfigured as error:
            raise ValidationError(str(error)) from error
        return cleaned


@admin.register(Profile)
class ProfileAdmin(StrictAdmin):
    form = ProfileForm
    formfield_overrides = {URLField: {"assume_scheme": "https"}}
    list_display = ("name", "provider", "upstream_model", "is_enabled")
    list_filter = ("is_enabled",)
    search_fields = ("name", "upstream_model")
    readonly_fields = ("effective_window", "effective_prompt")

    @admin.display(description="Effective prompt")
    def effective_prompt(self, row: Profile) -> str:
        return format_html("<pre>{}</pre>", _effective_agent(row).prompt_of_today())

    @admin.display(description="Effective context window")
    def effective_window(self, row: Profile) -> str:
        try:
            return str(_effective_agent(row).window())
        except ImproperlyConfigured as error:
            return str(error)

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """With the prompts and windows of agents that may have no row."""
        prompts = {}
        shown_windows = {}
        for name in (default_model(), *settings.HERMES_PROFILES):
            prompts[name] = agent_of(name).prompt_of_today()
            shown_windows[name] = str(agent_of(name).window())
        shown = {"prompts": prompts, "windows": shown_windows}
        return super().changelist_view(request, shown | (extra_context or {}))


def _effective_agent(row: Profile) -> Agent:
    """An entry of config.yaml takes the place of a row with its name.

    It is that of the stored row: a form with errors may have given this one any value.
    """
    profile: AgentProfile | None = settings.HERMES_PROFILES.get(row.name)
    stored = Profile.objects.filter(pk=row.pk).first()
    if profile is None and stored is not None:
        profile = profile_of_row(stored)
    return Agent(profile)
