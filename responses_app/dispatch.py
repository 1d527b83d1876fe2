"""Hints to the runners that generate; the sweep finds the responses of lost hints."""

from functools import cache
from typing import Protocol, cast

from django.conf import settings
from django.utils.module_loading import import_string


class Dispatcher(Protocol):
    def generate(self, response_id: str, owner_id: int) -> None:
        """There is work. Called on the event loop, after the commit; must not block or fail."""

    def cancel(self, response_id: str) -> None:
        """Its cancellation was requested."""


@cache
def get_dispatcher() -> Dispatcher:
    return cast(Dispatcher, import_string(settings.HERMES_DISPATCHER)())
