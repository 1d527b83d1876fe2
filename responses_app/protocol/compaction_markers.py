"""What compaction items stand for, in words that everybody shares."""

from collections.abc import Sequence
from dataclasses import dataclass

from responses_app.protocol.snapshot import Item

COMPACTION = "compaction"
# On an item that came out of a compaction: what it is there. No model is shown the mark.
MARK = "compacted"
SUMMARY, KEPT = "summary", "kept"


@dataclass(frozen=True)
class Standing:
    """The items that a model is shown in place of a compaction item; of one that was never finished, none."""

    items: Sequence[Item] = ()
    replaces_all: bool = False  # that came before it; otherwise what is before it is shown too
