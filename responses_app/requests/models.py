"""``model``: which agents a caller may name."""

from typing import Any

from django.conf import settings

from responses_app.errors import ModelNotFound
from responses_app.principals import Principal
from responses_app.requests.fields import short_text
from responses_app.services.profiles import default_model, is_default, profile_names

MAX_MODEL_CHARS = 200


def resolve_model(value: Any, principal: Principal) -> str:
    """The model name a response will carry; an absent one means the default agent."""
    if value is None:
        return default_model()
    name: str = short_text(MAX_MODEL_CHARS)(value, "model")
    if name in profile_names(principal.key_id):
        return name
    if is_default(name) or settings.HERMES_UNKNOWN_MODEL == "default":
        return default_model()
    raise ModelNotFound(name)


def model_names(principal: Principal) -> list[str]:
    return [default_model(), *profile_names(principal.key_id)]
