"""How often a request that failed is sent again, and after which pause."""

import random
import time

MAX_DOUBLINGS = 10
MAX_PAUSE_SECS = 60.0  # an upstream that asks for a longer one is not waited for
MAX_LOADING_PAUSE_SECS = 5.0  # between two requests to a model that is not ready yet


class Retries:
    """Those of one model, counted from its last answer."""

    def __init__(self, count: int, backoff_secs: float) -> None:
        self.pause_secs = 0.0  # before the next request
        self._count = count
        self._backoff_secs = backoff_secs  # before the first retry; doubled for each further one
        self._repeated = 0
        self._failing_since: float | None = None

    def begin(self) -> None:
        self._repeated = 0
        self._failing_since = None

    def repeats(self, retry_after_secs: float, patience_secs: float) -> bool:
        """May the request that failed without any output be sent again?

        A model that is not ready yet is waited for with patience, whatever the number of retries.
        """
        doubled = 2 ** min(self._repeated, MAX_DOUBLINGS)
        backoff_secs = self._backoff_secs * doubled * random.uniform(0.5, 1)  # noqa: S311
        left_secs = self._patience_left_secs(patience_secs)
        if left_secs > 0:
            backoff_secs = min(backoff_secs, MAX_LOADING_PAUSE_SECS, left_secs)
        is_left = self._repeated < self._count or left_secs > 0
        self._repeated += 1
        return self.waits(retry_after_secs, backoff_secs) and is_left

    def waits(self, retry_after_secs: float, backoff_secs: float = 0.0) -> bool:
        """An upstream that asks for more time than a client would wait is not asked again."""
        self.pause_secs = min(retry_after_secs + backoff_secs, MAX_PAUSE_SECS)
        return retry_after_secs <= MAX_PAUSE_SECS

    def _patience_left_secs(self, patience_secs: float) -> float:
        """Without retries no request is sent twice, not even to a model that is not ready yet."""
        now = time.monotonic()
        if self._failing_since is None:
            self._failing_since = now
        if not self._count:
            return 0.0
        return self._failing_since + patience_secs - now
