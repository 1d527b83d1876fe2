"""``model``: which agents a caller may name."""

from typing import Any

from django.conf import settings

from responses_app.http.principals import Principal
from responses_app.protocol.errors import InvalidRequest, ModelNotFound, NoModelAllowed
from responses_app.requests.fields import short_text
from responses_app.services.profiles import default_model, forget_names, is_default, models_of_key

model_name = short_text(200).described("One of GET /v1/models; absent, the default agent.")


def resolve_model(value: Any, principal: Principal) -> str:
    """The model name a response will carry."""
    allowed = model_names(principal)
    if value is None:
        return _unnamed(allowed)
    name = model_name(value, "model")
    if name not in allowed and not is_default(name):
        forget_names()  # another process may have just added it
        allowed = model_names(principal)
    if name in allowed:
        return name
    means_default = is_default(name) or settings.HERMES_UNKNOWN_MODEL == "default"
    if means_default and default_model() in allowed:
        return default_model()
    raise ModelNotFound(name)


def _unnamed(allowed: list[str]) -> str:
    """The default agent, or the only profile of a key that may not use the default."""
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
