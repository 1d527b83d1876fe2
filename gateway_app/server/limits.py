"""What all connections together may hold."""

import resource
from typing import Any

from django.conf import settings

# Connections over the limit that still get their 503; beyond them, one more is closed without an answer.
REFUSED_AT_ONCE = 256
# Files that are not connections of clients: the database, tools and their pipes, MCP servers, logs.
OTHER_FILES = 1000


class ByteBudget:
    """Bytes that some holders share."""

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
    """Every connection of this server by its transport, which stays the same when it becomes a WebSocket."""

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
    return int(settings.HERMES_MAX_CONNECTIONS + settings.HERMES_MAX_CONCURRENT + REFUSED_AT_ONCE + OTHER_FILES)


def raise_open_files() -> int:
    """As far as needed and allowed; the limit that holds now.

    Not to the hard limit as such: tools inherit it, and some programs close every number up to it.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = needed_files()
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return needed_files() if soft == resource.RLIM_INFINITY else soft
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted


def allowed_files() -> int:
    """What ``raise_open_files`` can reach."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return needed_files() if hard == resource.RLIM_INFINITY else hard
