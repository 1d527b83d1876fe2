"""Access notes: which responses were read lately, gathered in memory and written together."""

import threading
from collections.abc import Iterable

TRIES = 5  # a row that another transaction holds is tried again; one that is gone is not for ever


class AccessNotes:
    """Filled by any thread, taken by the watcher."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tries: dict[str, int] = {}

    def __bool__(self) -> bool:
        return bool(self._tries)

    def add(self, response_ids: Iterable[str]) -> None:
        with self._lock:
            self._tries.update(dict.fromkeys(response_ids, TRIES))

    def take(self) -> dict[str, int]:
        with self._lock:
            taken, self._tries = self._tries, {}
        return taken

    def put_back(self, missed: dict[str, int]) -> None:
        """What could not be written; a newer note of the same response stays as it is."""
        with self._lock:
            for response_id, tries in missed.items():
                if tries > 1:
                    self._tries.setdefault(response_id, tries - 1)
