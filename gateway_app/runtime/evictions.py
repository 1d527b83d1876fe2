"""Retention by itself: a small step with each sweep while there is work, a look now and then otherwise."""

import logging
import time

from responses_app.services.retention import evict_some

logger = logging.getLogger(__name__)

LOOK_SECS = 10.0  # a look costs a walk over as many index entries as there are responses to keep


class Evictions:
    def __init__(self) -> None:
        self._next_look = 0.0
        self._removed = 0

    async def step(self) -> None:
        if time.monotonic() < self._next_look:
            return
        removed = await evict_some()
        self._removed += removed
        if removed:
            return
        self._next_look = time.monotonic() + LOOK_SECS
        if self._removed:
            logger.info("Retention removed %d responses.", self._removed)
            self._removed = 0
