"""How a turn is stopped from outside."""

from enum import StrEnum


class StopCause(StrEnum):
    """Why a turn is interrupted from outside."""

    CANCELLED = "cancelled"
    UNATTENDED = "unattended"
    SHUTDOWN = "shutdown"


class ContinuedElsewhere(Exception):
    """The turn goes on in another process, from the log."""
