"""Providers by name; a new one is a file here and a line in the settings."""

from functools import cache
from typing import TYPE_CHECKING, cast

from django.conf import settings
from django.utils.module_loading import import_string

from gateway_app.agent.types import Provider

if TYPE_CHECKING:
    from gateway_app.providers.upstream import Upstream

REMOTE = ("openai", "custom")


@cache
def get_provider(name: str) -> Provider:
    kind = import_string(settings.HERMES_PROVIDERS[name])
    return cast(Provider, kind(_upstream(name)) if name in REMOTE else kind())


def _upstream(name: str) -> "Upstream":
    # The SDK takes most of a second to import; the built-in model needs none of it.
    from gateway_app.providers.upstream import Upstream

    return Upstream(
        name=name,
        model=settings.HERMES_MODEL,
        base_url=settings.HERMES_BASE_URL,
        api_key=settings.HERMES_API_KEY,
        api_mode=settings.HERMES_API_MODE,
        connect_secs=settings.HERMES_CONNECT_TIMEOUT,
        write_secs=settings.HERMES_WRITE_TIMEOUT,
        read_secs=settings.HERMES_STREAM_READ_TIMEOUT,
        stale_secs=settings.HERMES_STREAM_STALE_TIMEOUT,
    )
