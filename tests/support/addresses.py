"""Loopback addresses, one for each stub.

The system gives a port that was closed to the next program that asks, and the client of one test would
reach the stub of another.
"""

import os
from itertools import count

LOOPBACK = "127.0.0.1"
_NUMBERS = count()


def own_address() -> str:
    process = os.getpid()
    return f"127.{64 + (process >> 8) % 128}.{process % 256}.{1 + next(_NUMBERS) % 250}"
