"""Providers by name; a new one is a file here and a line in the settings."""

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, cast

import orjson
from django.conf import settings
from django.utils.module_loading import import_string

from gateway_app.agent.model_call import Provider
from gateway_app.config.models import Model
from gateway_app.config.presets.registry import PRESETS
from gateway_app.config.upstream_limits import read_limit_secs, stale_limit_secs

if TYPE_CHECKING:
    from gateway_app.providers.openai.client import Upstream


def get_providers(models: Sequence[Model]) -> tuple[Provider, ...]:
    """One for each model, in the order in which they are asked; the same model has the same one."""
    providers = []
    for model in models:
        providers.append(_make(orjson.dumps(model, option=orjson.OPT_SORT_KEYS)))
    return tuple(providers)


def silence_limits(model: Model) -> dict[str, float]:
    """How long the server of a model may be silent; empty for a model without a server."""
    url = model["base_url"]
    if not url:
        return {}
    return {
        "read_secs": read_limit_secs(url, settings.HERMES_STREAM_READ_TIMEOUT),
        "stale_secs": stale_limit_secs(url, settings.HERMES_STREAM_STALE_TIMEOUT),
    }


@cache
def _make(encoded_model: bytes) -> Provider:
    model = orjson.loads(encoded_model)
    name = model["provider"]
    kind = import_string(settings.HERMES_PROVIDERS[name])
    if name in PRESETS:
        return cast(Provider, kind(_upstream(model)))
    return cast(Provider, kind())


def _upstream(model: Model) -> "Upstream":
    # The SDK takes most of a second to import; the built-in model needs none of it.
    from gateway_app.providers.openai.client import Upstream

    limits = silence_limits(model)
    return Upstream(
        name=model["provider"],
        model=model["model"],
        base_url=model["base_url"],
        api_key=model["api_key"],
        api_mode=model["api_mode"],
        options=model["options"],
        connect_secs=settings.HERMES_CONNECT_TIMEOUT,
        write_secs=settings.HERMES_WRITE_TIMEOUT,
        read_secs=limits["read_secs"],
        stale_secs=limits["stale_secs"],
        loading_secs=settings.HERMES_MODEL_LOADING_SECS,
    )
