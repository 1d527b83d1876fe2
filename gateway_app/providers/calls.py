"""The calls of one answer, whichever protocol it comes in."""

from collections.abc import Iterator

from gateway_app.agent.types import CallArguments, CallFinished, CallStarted, ModelCall, ModelEvent
from responses_app.ids import new_call_id

MAX_ID_CHARS = MAX_NAME_CHARS = 200  # what the ledger stores


class Calls:
    """Ids that are unique in the turn, and nothing said while a call is open."""

    def __init__(self, call: ModelCall) -> None:
        self._taken = {item["call_id"] for item in call.items if item.get("type") == "function_call"}
        self._has_arguments: dict[str, bool] = {}
        self._held: list[ModelEvent] = []
        self.count = 0

    def say(self, event: ModelEvent) -> Iterator[ModelEvent]:
        """Now, or after the calls that are open: whatever is said closes them in the log."""
        if self._has_arguments:
            self._held.append(event)
        else:
            yield event

    def start(self, given_id: str, name: str) -> CallStarted:
        """Some servers count their ids anew in every answer; the ledger knows a call by its id."""
        is_usable = 0 < len(given_id) <= MAX_ID_CHARS and given_id not in self._taken
        call_id = given_id if is_usable else new_call_id()
        self._taken.add(call_id)
        self._has_arguments[call_id] = False
        self.count += 1
        return CallStarted(call_id, name[:MAX_NAME_CHARS])

    def arguments(self, call_id: str, delta: str) -> Iterator[ModelEvent]:
        if delta and call_id in self._has_arguments:
            self._has_arguments[call_id] = True
            yield CallArguments(call_id, delta)

    def finish(self, call_id: str) -> Iterator[ModelEvent]:
        if call_id not in self._has_arguments:
            return
        if not self._has_arguments.pop(call_id):
            yield CallArguments(call_id, "{}")
        yield CallFinished(call_id)
        if not self._has_arguments:
            held, self._held = self._held, []
            yield from held

    def end(self, *, is_cut: bool) -> Iterator[ModelEvent]:
        """A call that the model was cut off in ends incomplete."""
        for call_id in list(self._has_arguments):
            if is_cut:
                yield CallFinished(call_id, is_cut=True)
            else:
                yield from self.finish(call_id)
        yield from self._held
