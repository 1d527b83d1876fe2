"""The settling hook: what else is stored in the transaction that ends a turn, or lets it wait."""

from functools import cache
from typing import Protocol, cast

from django.conf import settings
from django.utils.module_loading import import_string

from responses_app.models import Response
from responses_app.protocol.response_object import ResponseBody


class SettlingHook(Protocol):
    def __call__(self, row: Response, body: ResponseBody | None) -> None:
        """The ended response; None for one that waits for an approval from now on."""


def run_settling_hook(row: Response, body: ResponseBody | None) -> None:
    """Every path on which a response ends calls it, also those of commands and of the sweep."""
    _hook()(row, body)


@cache
def _hook() -> SettlingHook:
    return cast(SettlingHook, import_string(settings.HERMES_SETTLING_HOOK))
