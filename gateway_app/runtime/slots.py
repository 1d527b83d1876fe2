"""Slots: how many turns run at once in this process, shared fairly between owners."""

from collections import Counter

MAX_WAITING = 1_000  # ids of one owner; the sweep finds the others
RESERVED_PART = 8  # one owner never holds the last eighth: another owner can always start


class Slots:
    """The next free slot goes to the owner that holds the fewest of them."""

    def __init__(self, total: int) -> None:
        self.total = total
        self._held: Counter[int] = Counter()
        self._waiting: dict[int, dict[str, None]] = {}  # owner -> ids in the order of their hints

    @property
    def free(self) -> int:
        return self.total - self._held.total()

    def full_owners(self) -> list[int]:
        """Those that hold as many slots as one owner may."""
        return [owner for owner, held in self._held.items() if held >= self._most]

    @property
    def has_waiting(self) -> bool:
        return bool(self._waiting)

    def may_start(self, owner_id: int) -> bool:
        return self.free > 0 and self._held[owner_id] < self._most

    def take(self, owner_id: int) -> None:
        self._held[owner_id] += 1

    def give_back(self, owner_id: int) -> None:
        self._held[owner_id] -= 1
        if not self._held[owner_id]:
            del self._held[owner_id]

    # -- what waits ---------------------------------------------------------------------
    def wait(self, response_id: str, owner_id: int) -> None:
        waiting = self._waiting.setdefault(owner_id, {})
        if len(waiting) < MAX_WAITING:
            waiting[response_id] = None

    def forget(self, response_id: str, owner_id: int) -> None:
        waiting = self._waiting.get(owner_id, {})
        waiting.pop(response_id, None)
        if not waiting:
            self._waiting.pop(owner_id, None)

    def clear(self) -> None:
        self._waiting.clear()

    def next(self) -> tuple[str, int] | None:
        """The response to start now, and its owner; None where none may start."""
        owners = [owner for owner in self._waiting if self.may_start(owner)]
        if not owners:
            return None
        owner = min(owners, key=self._held.__getitem__)
        return next(iter(self._waiting[owner])), owner

    @property
    def _most(self) -> int:
        """Slots of one owner; of a single slot none is reserved."""
        if self.total == 1:
            return 1
        return self.total - max(1, self.total // RESERVED_PART)
