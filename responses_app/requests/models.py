"""``model``: which agents a caller may name."""

from typing import Any

from django.conf import settings

from responses_app.errors import ModelNotFound
from responses_app.models import Profile
from responses_app.principals import Principal
from responses_app.requests.fields import short_text

DEFAULT_NAMES = ("default", "hermes-agent")
MAX_MODEL_CHARS = 200


def resolve_model(value: Any, principal: Principal) -> str:
    """The model name a response will carry; an absent one means the default agent."""
    if value is None:
        return default_model()
    name: str = short_text(MAX_MODEL_CHARS)(value, "model")
    if name in (*DEFAULT_NAMES, default_model()) or name in profile_names(principal):
        return name
    if settings.HERMES_UNKNOWN_MODEL == "default":
        return name
    raise ModelNotFound(name)


def default_model() -> str:
    return str(settings.API_SERVER_MODEL_NAME)


def profile_names(principal: Principal) -> list[str]:
    profiles = Profile.objects.filter(is_enabled=True)
    if principal.key_id is not None:
        allowed = profiles.filter(apikey=principal.key_id)
        profiles = allowed if allowed.exists() else profiles
    return list(profiles.order_by("name").values_list("name", flat=True))
