"""What was read a moment ago: a busy server does not ask the same for each request.

A change that this process makes counts at once, one of another process after FRESH_SECS.
"""

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import Any, Generic, TypeVar

from django.db import connection, models, transaction
from django.db.models.signals import m2m_changed, post_delete, post_save

from responses_app.protocol.errors import ApiError

K = TypeVar("K")
V = TypeVar("V")

FRESH_SECS = 0.1  # a hundred requests in a second share ten reads
RENEWED_SECS = 0.05  # the age from which what is in use is read again, before requests have to wait
MAX_VALUES = 1_000  # of one kind


@dataclass(slots=True)
class _Known(Generic[V]):
    value: V
    read: Callable[[], V]
    read_at: float
    is_used: bool = False  # since it was read


class RecentlyRead(Generic[K, V]):
    """Safe between threads. On the event loop, what is not known raises SynchronousOnlyOperation."""

    def __init__(self, fresh_secs: float = FRESH_SECS) -> None:
        self._fresh_secs = fresh_secs
        self._values: dict[K, _Known[V]] = {}
        self._lock = threading.Lock()
        self._changes = 0
        self.is_renewal_due = False
        _kinds.append(self)

    def get(self, key: K, read: Callable[[], V]) -> V:
        """What ``read`` returns now, or returned a moment ago; an error is not kept."""
        found = self._values.get(key)
        if found is not None:
            age_secs = monotonic() - found.read_at
            if age_secs < self._fresh_secs:
                found.is_used = True
                self.is_renewal_due |= age_secs > RENEWED_SECS
                return found.value
        return self._read(key, read)

    def renew(self) -> None:
        """Read all that was used since it was read; what fails now fails for who asks next."""
        self.is_renewal_due = False
        for key, known in list(self._values.items()):
            if known.is_used:
                with suppress(ApiError):
                    self._read(key, known.read)

    def forget(self) -> None:
        with self._lock:
            self._changes += 1
            self._values.clear()

    def _read(self, key: K, read: Callable[[], V]) -> V:
        changes = self._changes
        read_at = monotonic()
        value = read()
        if connection.in_atomic_block:  # a transaction may be rolled back
            return value
        with self._lock:
            if changes != self._changes:
                return value  # it may have been read before the change
            if len(self._values) >= MAX_VALUES:
                self._values.clear()
            self._values[key] = _Known(value, read, read_at)
        return value


_kinds: list[RecentlyRead[Any, Any]] = []


def is_renewal_due() -> bool:
    return any(kind.is_renewal_due for kind in _kinds)


def renew_recent() -> None:
    """All kinds together: one visit to a thread for the requests of the next moment."""
    for kind in _kinds:
        kind.renew()


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
