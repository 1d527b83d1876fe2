"""Pins: turns that this process leaves to those that have the files of their owner."""

from collections.abc import Callable

from gateway_app.runtime.workspaces import folder_elsewhere
from responses_app.eventlog.store import event_store

MAX_KNOWN = 10_000

Forward = Callable[[str, str, int], object]  # takes a folder, a response and its owner


class Pins:
    """Knows some owners whose files are elsewhere; the database knows all."""

    def __init__(self) -> None:
        self._known: set[int] = set()
        self.forward: Forward | None = None  # to the workers that have a folder; thread-safe

    def is_known_elsewhere(self, owner_id: int) -> bool:
        """Such a turn is not claimed as it is admitted, and looked up before its claim."""
        return owner_id in self._known

    def note_elsewhere(self, owner_id: int) -> None:
        if len(self._known) >= MAX_KNOWN:
            self._known.clear()
        self._known.add(owner_id)

    def leaves(self, response_id: str, owner_id: int) -> bool:
        """In the writer, before a claim: have other processes the files, and can run the turn?

        What is not stored can run only here, and what counts towards no owner is only settled.
        """
        if not owner_id or is_only_here(response_id):
            return False
        folder = folder_elsewhere(owner_id)
        if not folder:
            self._known.discard(owner_id)
            return False
        self.note_elsewhere(owner_id)
        if self.forward is not None:
            self.forward(folder, response_id, owner_id)
        return True


def is_only_here(response_id: str) -> bool:
    """Only this process has the log of a response that is not stored."""
    tail = event_store.tails.find(response_id)
    return tail is not None and tail.is_volatile


pins = Pins()
