"""Calls that are repeated with the same result: the model gets a note, and then the turn ends.

Only repetitions count since something new happened: a command that is run again after each
change may print the same each time.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable

import orjson

from gateway_app.agent.tools import ToolCall
from responses_app.protocol.items import CALLS, OUTPUTS, Item, call_arguments, item_text

NOTED_AT = 3
STOPPED_AT = 5
_NOTE_START = "\n\n[This call has now returned the same result "
NOTE = (
    _NOTE_START
    + "{count} times. It will not change: do something else, or answer with what you know.]"
)


class Repeats:
    """Of one turn; rebuilt from the items of earlier attempts, which hold the notes as well."""

    def __init__(self, items: Iterable[Item] = ()) -> None:
        self._known: set[bytes] = set()
        self._counts: Counter[bytes] = Counter()
        calls: dict[str, ToolCall] = {}
        for item in items:
            if item["type"] in CALLS:
                call = ToolCall(item["call_id"], item["name"], call_arguments(item))
                calls[item["call_id"]] = call
            elif item["type"] in OUTPUTS and item["call_id"] in calls:
                self.noted(calls[item["call_id"]], item_text(item))

    @property
    def must_stop(self) -> bool:
        return any(count >= STOPPED_AT for count in self._counts.values())

    def noted(self, call: ToolCall, output: str) -> str:
        """The output, with a note for the model where it keeps repeating itself."""
        plain = output.partition(_NOTE_START)[0]
        key = hashlib.sha256(repr((call.name, _compared(call.arguments), plain)).encode()).digest()
        if key not in self._known:
            self._known.add(key)
            self._counts.clear()
        self._counts[key] += 1
        count = self._counts[key]
        if count < NOTED_AT:
            return output
        return plain + NOTE.format(count=count)


def _compared(arguments: str) -> str:
    """Arguments that mean the same are the same, however they are written."""
    try:
        return orjson.dumps(orjson.loads(arguments), option=orjson.OPT_SORT_KEYS).decode()
    except orjson.JSONDecodeError:
        return " ".join(arguments.split())
