"""Calls of the server's tools that have no item in the output, or none yet."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from responses_app.protocol.events import Event
from responses_app.protocol.items import Item

INTERNAL_TOOL_PREFIX = "_"
RequestItem = Callable[[int, str, str, str], Item]  # see approval_proofs


@dataclass(frozen=True)
class HeldCall:
    """A whole call that has no item before it is known whether the client is asked about it."""

    name: str
    arguments: str
    request_id: str | None = None  # the client was asked in another turn, and approved


@dataclass(frozen=True)
class UnseenCalls:
    """Calls that have no item: for good, or until it is known whether the client is asked."""

    hidden: Collection[str] = ()  # ids
    held: Mapping[str, HeldCall] = field(default_factory=dict)  # by id
    asks_client: Collection[str] = ()  # names of tools whose calls are held
    request_item: RequestItem | None = None  # None where no client is asked


ALL_SEEN = UnseenCalls()


def from_log(called: Iterable[Event]) -> UnseenCalls:
    """From the events of calls that have no item."""
    hidden: set[str] = set()
    held: dict[str, HeldCall] = {}
    for call in called:
        if call["name"].startswith(INTERNAL_TOOL_PREFIX):
            hidden.add(call["call_id"])
        else:
            held[call["call_id"]] = HeldCall(call["name"], call["arguments"])
    return UnseenCalls(frozenset(hidden), held)
