"""Hints to the runners that generate; the sweep finds the responses of lost hints."""

from functools import cache
from typing import Any, Protocol, cast

from django.conf import settings
from django.utils.module_loading import import_string


class Reservation(Protocol):
    """A slot of this process for a turn that is about to be admitted."""

    def may_claim(self) -> bool:
        """In the writer, which may have waited long for the database."""

    def start(self, claimed: Any) -> None:
        """Right after the commit: the turn was claimed as it was admitted."""

    def release(self) -> None:
        """The turn was not claimed. Does nothing after ``start``."""


class Dispatcher(Protocol):
    def reserve(self, owner_id: int, *, is_stored: bool) -> Reservation | None:
        """On the event loop, before the admission; None where the turn has to wait for a claim."""

    def generate(self, response_id: str, owner_id: int) -> None:
        """There is work. Called on the event loop, after the commit; must not block or fail."""

    def cancel(self, response_id: str) -> None:
        """Its cancellation was requested."""


@cache
def get_dispatcher() -> Dispatcher:
    return cast(Dispatcher, import_string(settings.HERMES_DISPATCHER)())
