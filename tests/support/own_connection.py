"""The connection of this process, to a database of a test's choice."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import dj_database_url
from django.db import connections


@contextmanager
def connected_to(url: str) -> Iterator[None]:
    before = connections.settings["default"]
    parsed = {**dj_database_url.parse(url), "ENGINE": "responses_app.postgresql"}
    use(connections.configure_settings({"default": parsed})["default"])
    try:
        yield
    finally:
        use(before)


def use(settings: Mapping[str, Any]) -> None:
    connections["default"].close()
    connections.settings["default"] = settings
    del connections["default"]  # the wrapper of this thread; others make theirs when they start
