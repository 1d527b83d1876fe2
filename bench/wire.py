"""What the model and the client agree on: the order inside a request, and the stamp inside a token."""

import re
import time

STAMP_MODULO = 10**9  # µs; a stamp names a moment within the last 1,000 seconds
_ORDER = re.compile(rb"tokens=(\d+) pace=([\d.]+) words=([01]) after=([\d.]+)")


def order(number: int, tokens: int, pace: float = 0.0, *, words: bool = False, after: float = 0.0) -> str:
    """The text of a request. The number makes each text another, so that no server takes two requests for one.

    ``pace``: tokens per second, 0 for as fast as possible. ``words``: ordinary words instead of stamps.
    ``after``: seconds until the first token.
    """
    return f"request {number}: tokens={tokens} pace={pace} words={int(words)} after={after}"


def read_order(body: bytes) -> tuple[int, float, bool, float]:
    """The last order in a request: those before it are history."""
    orders = list(_ORDER.finditer(body))
    if not orders:
        return 3, 0.0, False, 0.0
    found = orders[-1]
    return int(found[1]), float(found[2]), found[3] == b"1", float(found[4])


def now_us() -> int:
    """A clock that all processes of one machine share."""
    return time.monotonic_ns() // 1000


def stamp() -> bytes:
    return b"%09d " % (now_us() % STAMP_MODULO)


def age_ms(stamped: int, arrived_us: int) -> float:
    """How old a stamp was when it arrived."""
    return ((arrived_us - stamped) % STAMP_MODULO) / 1000
