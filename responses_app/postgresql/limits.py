"""How long a session or a transaction waits for a locked row, and may hold its own locks.

A process that is frozen in a transaction would hold its locks for ever: after a lease, when others
take its work, the server ends it.
"""

from django.conf import settings

MIN_IDLE_SECS = 2.0  # a thread of a loaded machine may be this late with its next statement


def _limits(lock_wait_secs: float) -> dict[str, int]:
    """PostgreSQL's settings, in milliseconds."""
    idle_secs = max(settings.HERMES_LEASE_SECS, MIN_IDLE_SECS)
    return {
        "lock_timeout": round(1000 * lock_wait_secs),
        "idle_in_transaction_session_timeout": round(1000 * idle_secs),
    }


def session_options(lock_wait_secs: float, given: str) -> str:
    """The options of a new connection: those that were given, and the limits."""
    options = [given] if given else []
    for name, value in _limits(lock_wait_secs).items():
        options.append(f"-c {name}={value}")
    return " ".join(options)


def transaction_statement(lock_wait_secs: float) -> str:
    """Sets the limits for the rest of a transaction."""
    calls: list[str] = []
    for name, value in _limits(lock_wait_secs).items():
        calls.append(f"set_config('{name}', '{value}', true)")
    return f"SELECT {', '.join(calls)}"
