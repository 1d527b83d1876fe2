"""The calls of one answer, whichever protocol it comes in."""

from collections.abc import Iterator

from gateway_app.agent.answer_buffer import is_whole
from gateway_app.agent.events import (
    CallArguments,
    CallFinished,
    CallStarted,
    ModelCall,
    ModelEvent,
)
from responses_app.protocol.ids import new_call_id
from responses_app.protocol.items import CALLS

MAX_ID_CHARS = MAX_NAME_CHARS = 200  # what the ledger stores


class Calls:
    """Ids that are unique in the turn, and nothing said while a call is open."""

    def __init__(self, call: ModelCall) -> None:
        shown = {item["call_id"] for item in call.items if item.get("type") in CALLS}
        self._taken = shown | call.used_call_ids
        self._open: dict[str, list[str]] = {}  # the arguments so far
        self._call = call
        self._custom = {tool["name"] for tool in call.client_tools if tool["type"] == "custom"}
        self._free_text: set[str] = set()
        self._held: list[ModelEvent] = []
        self.count = 0

    def say(self, event: ModelEvent) -> Iterator[ModelEvent]:
        """Now, or after the calls that are open: whatever is said closes them in the log."""
        if self._open:
            self._held.append(event)
        else:
            yield event

    def start(self, given_id: str, name: str) -> CallStarted:
        """Some servers count their ids anew in every answer; the ledger knows a call by its id."""
        is_usable = 0 < len(given_id) <= MAX_ID_CHARS and given_id not in self._taken
        call_id = given_id if is_usable else new_call_id()
        self._taken.add(call_id)
        self._open[call_id] = []
        self.count += 1
        name = self._call.public_name(name)
        kind = "custom_tool_call" if name in self._custom else "function_call"
        if kind == "custom_tool_call":
            self._free_text.add(call_id)
        return CallStarted(call_id, name[:MAX_NAME_CHARS], kind)

    def arguments(self, call_id: str, delta: str) -> Iterator[ModelEvent]:
        if delta and call_id in self._open:
            self._open[call_id].append(delta)
            yield CallArguments(call_id, delta)

    def finish(self, call_id: str) -> Iterator[ModelEvent]:
        if call_id not in self._open:
            return
        if not self._open.pop(call_id) and call_id not in self._free_text:
            yield CallArguments(call_id, "{}")
        yield CallFinished(call_id)
        if not self._open:
            held, self._held = self._held, []
            yield from held

    @property
    def are_whole(self) -> bool:
        return all(self._is_whole(call_id) for call_id in self._open)

    def end(self, *, is_cut: bool) -> Iterator[ModelEvent]:
        """Where the model was cut off, a call whose arguments are not complete ends incomplete."""
        for call_id in list(self._open):
            if is_cut and not self._is_whole(call_id):
                del self._open[call_id]
                yield CallFinished(call_id, is_cut=True)
            else:
                yield from self.finish(call_id)
        held, self._held = self._held, []
        yield from held

    def _is_whole(self, call_id: str) -> bool:
        return is_whole("".join(self._open[call_id]))
