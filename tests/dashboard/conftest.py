from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.support.browser import started_chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One Chromium for a module; its event loop would disturb other modules."""
    with started_chromium() as running:
        yield running
