"""The platforms of this server, by name."""

from functools import cache

from django.conf import settings
from django.utils.module_loading import import_string

from gateway_app.config.platforms import PlatformConfig
from gateway_app.platforms.adapter import Adapter


@cache
def adapters() -> dict[str, Adapter]:
    """One adapter per enabled platform; the same ones for the whole process."""
    found = {}
    for name, config in settings.HERMES_PLATFORMS.items():
        found[name] = _make(config)
    return found


def _make(config: PlatformConfig) -> Adapter:
    make = import_string(settings.HERMES_PLATFORM_ADAPTERS[config.name])
    adapter: Adapter = make(config)
    return adapter


def server_adapters() -> list[Adapter]:
    """Those whose messages this server sends; the others have a process of their own."""
    return [adapter for adapter in adapters().values() if not adapter.is_polled]
