"""Removes what the retention settings allow, in a loop beside the sweep."""

import asyncio
import logging
import time
from functools import partial

from django.conf import settings

from responses_app.database import database
from responses_app.http.request_gate import request_gate
from responses_app.services.archive.pruning import Search
from responses_app.services.archive.retention import Rules, configured_rules, select

logger = logging.getLogger(__name__)

PAUSE_SWEEPS = 10  # between two passes, at least
IDLE_SHARE = 100  # a pass counts every kept response: searching takes at most 1 % of the time
MAX_PAUSE_SECS = 600.0  # a search that waited for a slow database must not end retention


class Evictions:
    def __init__(self) -> None:
        self._search_secs = 0.0  # of this pass, without the steps that removed something

    async def evict_forever(self) -> None:
        while not request_gate.is_closed:
            rules = configured_rules()
            if rules is not None:
                await self._evict(rules)
            pause_secs = max(
                PAUSE_SWEEPS * settings.HERMES_SWEEP_SECS, IDLE_SHARE * self._search_secs
            )
            await asyncio.sleep(min(pause_secs, MAX_PAUSE_SECS))

    async def _evict(self, rules: Rules) -> None:
        """One pass; only the removal of a few rows at a time goes through the writer."""
        began_at = time.monotonic()
        search = Search(await database.read(select, rules))
        self._search_secs = time.monotonic() - began_at
        removed = 0
        while not (search.is_over or request_gate.is_closed):
            removed += await self._step(search)
        if removed:
            logger.info("Retention removed %d responses.", removed)

    async def _step(self, search: Search) -> int:
        """Search one page and remove its batch, then pause as long."""
        removed = 0
        began_at = time.monotonic()
        batch = await database.read(search.next_batch)
        if batch:
            removed = await database.write(partial(search.remove, batch))
        took_secs = time.monotonic() - began_at
        if not removed:
            self._search_secs += took_secs
        await asyncio.sleep(took_secs)
        return removed
