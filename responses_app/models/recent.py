"""What was read a moment ago: a busy server does not ask the same for each request.

A change that this process makes counts at once, one of another process after FRESH_SECS.
"""

import threading
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from django.db import connection, models, transaction
from django.db.models.signals import m2m_changed, post_delete, post_save

K = TypeVar("K")
V = TypeVar("V")

FRESH_SECS = 0.1  # a hundred requests in a second share ten reads
MAX_VALUES = 1_000  # of one kind


class RecentlyRead(Generic[K, V]):
    """Safe between threads. On the event loop, what is not known raises SynchronousOnlyOperation."""

    def __init__(self, fresh_secs: float = FRESH_SECS) -> None:
        self._fresh_secs = fresh_secs
        self._values: dict[K, tuple[V, float]] = {}  # with the time until which it is fresh
        self._lock = threading.Lock()
        self._changes = 0
        _kinds.append(self)

    def get(self, key: K, read: Callable[[], V]) -> V:
        """What ``read`` returns now, or returned a moment ago; an error is not kept."""
        found = self._values.get(key)
        if found is not None and time.monotonic() < found[1]:
            return found[0]
        changes = self._changes
        value = read()
        if not connection.in_atomic_block:  # a transaction may be rolled back
            self._keep(key, value, changes)
        return value

    def forget(self) -> None:
        with self._lock:
            self._changes += 1
            self._values.clear()

    def _keep(self, key: K, value: V, changes: int) -> None:
        with self._lock:
            if changes != self._changes:
                return  # it may have been read before the change
            if len(self._values) >= MAX_VALUES:
                self._values.clear()
            self._values[key] = (value, time.monotonic() + self._fresh_secs)


_kinds: list[RecentlyRead[Any, Any]] = []


def forget_recent() -> None:
    """After the commit of the caller's transaction, if there is one."""
    transaction.on_commit(_forget_all)


def forget_when_changed(*changing: type[models.Model]) -> None:
    for model in changing:
        for signal in (post_save, post_delete, m2m_changed):
            signal.connect(_note_change, sender=model)


def _note_change(**kwargs: object) -> None:
    forget_recent()


def _forget_all() -> None:
    for kind in _kinds:
        kind.forget()
