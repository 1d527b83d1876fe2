"""``model``: which agents a caller may name."""

from typing import Any

from django.conf import settings

from responses_app.http.principals import Principal
from responses_app.protocol.errors import InvalidRequest, ModelNotFound, NoModelAllowed
from responses_app.requests.fields import short_text
from responses_app.services.profiles import default_model, is_default, models_of_key

MAX_MODEL_CHARS = 200


def resolve_model(value: Any, principal: Principal) -> str:
    """The model name a response will carry."""
    allowed = model_names(principal)
    if value is None:
        return _unnamed(allowed)
    name: str = short_text(MAX_MODEL_CHARS)(value, "model")
    if name in allowed:
        return name
    is_meant = is_default(name) or settings.HERMES_UNKNOWN_MODEL == "default"
    if is_meant and default_model() in allowed:
        return default_model()
    raise ModelNotFound(name)


def _unnamed(allowed: list[str]) -> str:
    """The default agent, or the only profile of a key that may not use that."""
    if default_model() in allowed:
        return default_model()
    if not allowed:
        raise NoModelAllowed
    if len(allowed) > 1:
        names = ", ".join(allowed)
        raise InvalidRequest(
            f"This key may use several models: name one of {names}.", param="model"
        )
    return allowed[0]


def model_names(principal: Principal) -> list[str]:
    return models_of_key(principal.key_id)
