"""Limits over all connections: bytes without a key, open connections, open files."""

import resource
from typing import Any

from django.conf import settings

UNAUTHENTICATED_BODY_BYTES = 1_000_000  # a login form has a few hundred
# Connections over the limit that still get their 503; beyond them, one more is closed.
REFUSED_AT_ONCE = 256
# Files that are not connections of clients: the database, tools and their pipes, MCP servers, logs.
OTHER_FILES = 1000


class ByteBudget:
    """A number of bytes that several requests share."""

    def __init__(self, limit: int) -> None:
        self._left = limit

    def take(self, count: int) -> bool:
        """False, and nothing is taken, where fewer are left."""
        if count > self._left:
            return False
        self._left -= count
        return True

    def give_back(self, count: int) -> None:
        self._left += count


class OpenConnections:
    """By their transports, which stay the same when a connection becomes a WebSocket."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._transports: set[Any] = set()

    def add(self, transport: Any) -> None:
        self._transports.add(transport)

    def discard(self, transport: Any) -> None:
        self._transports.discard(transport)

    @property
    def excess(self) -> int:
        return len(self._transports) - self.limit


def needed_files() -> int:
    """A connection to the model for each response that runs, besides those of the clients."""
    clients: int = settings.HERMES_MAX_CONNECTIONS + REFUSED_AT_ONCE
    models: int = settings.HERMES_MAX_CONCURRENT
    return clients + models + OTHER_FILES


def reachable_files() -> int:
    """What is needed, as far as this process may raise its own limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if resource.RLIM_INFINITY in (soft, hard):
        return needed_files()
    return min(needed_files(), hard)


def raise_open_files() -> None:
    """Raise the limit as far as needed, and not up to the hard limit.

    Tools inherit the limit, and some programs close every number up to it.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < reachable_files():
        resource.setrlimit(resource.RLIMIT_NOFILE, (reachable_files(), hard))
