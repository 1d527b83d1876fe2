"""Revocation: streams end soon after their key is revoked or their user logs out; turns go on."""

import asyncio
import contextvars
import logging
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from responses_app.database import database
from responses_app.http.principals import Principal, authenticate
from responses_app.models import ApiKey
from responses_app.protocol.errors import StorageUnavailable, Unauthenticated

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Credential:
    """What a reader authenticated with, and the query that finds which of many are still valid."""

    still_valid: Callable[[Collection[Any]], set[Any]]
    value: Any


def credential_of(principal: Principal, authorization: str | None) -> Credential | None:
    """None for the root key, which only a restart changes."""
    if principal.key_id is not None:
        return Credential(valid_keys, principal.key_id)
    if principal.operator:
        return Credential(valid_tokens, authorization)
    return None


def valid_keys(key_ids: Collection[int]) -> set[int]:
    return set(ApiKey.objects.valid().filter(pk__in=key_ids).values_list("pk", flat=True))


def valid_tokens(headers: Collection[str]) -> set[str]:
    """One query each: few operators have the playground open."""
    valid = set()
    for header in headers:
        try:
            authenticate(header)
        except Unauthenticated:
            continue
        valid.add(header)
    return valid


class Revocation:
    """The readers of this process by their credentials: one query a second for all of them."""

    def __init__(self) -> None:
        self._readers: dict[Credential, set[Callable[[], None]]] = {}
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def watched(self, credential: Credential | None, end: Callable[[], None]) -> Iterator[None]:
        """Inside this block, ``end`` is called as soon as the credential is not valid any more."""
        if credential is None:
            yield
            return
        self._readers.setdefault(credential, set()).add(end)
        self._ensure_running()
        try:
            yield
        finally:
            readers = self._readers[credential]
            readers.discard(end)
            if not readers:
                del self._readers[credential]

    def _ensure_running(self) -> None:
        if self._task is None or self._task.done():
            # An empty context: this task outlives the request that starts it.
            loop = asyncio.get_running_loop()
            self._task = loop.create_task(self._run(), context=contextvars.Context())

    async def _run(self) -> None:
        while self._readers:
            await asyncio.sleep(settings.HERMES_POLL_SECS)
            try:
                await self.check()
            except StorageUnavailable:
                continue  # without the database, no key can be checked: readers stay
            except Exception:
                logger.exception("The keys of open streams could not be checked.")

    async def check(self) -> None:
        """Check the credentials of all open streams once."""
        values: dict[Callable[[Collection[Any]], set[Any]], set[Any]] = {}
        for credential in self._readers:
            values.setdefault(credential.still_valid, set()).add(credential.value)
        for still_valid, given in values.items():
            valid = await database.read(still_valid, given)
            for value in given - valid:
                self._end(Credential(still_valid, value))

    def _end(self, credential: Credential) -> None:
        for end in list(self._readers.get(credential, ())):
            end()


revocation = Revocation()
