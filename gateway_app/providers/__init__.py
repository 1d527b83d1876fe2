"""Providers by name; a new one is a file here and a line in the settings."""

from functools import cache
from typing import cast

from django.conf import settings
from django.utils.module_loading import import_string

from gateway_app.agent.types import Provider


@cache
def get_provider(name: str) -> Provider:
    return cast(Provider, import_string(settings.HERMES_PROVIDERS[name])())
