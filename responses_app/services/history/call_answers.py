"""Every tool call that a client got has its output, and every output its call."""

from collections.abc import Callable
from dataclasses import dataclass

from responses_app.models import ConversationItem, Response
from responses_app.protocol.errors import InvalidRequest
from responses_app.protocol.items import (
    CALLS,
    OUTPUTS,
    Item,
    all_call_ids,
    call_ids,
    output_ids,
)
from responses_app.services.conversations import readable_items, resolved
from responses_app.services.history.context import history_of


@dataclass(frozen=True)
class CallsInHistory:
    """Which of these calls the history has."""

    conversation_id: str | None
    previous_id: str | None
    call_ids: frozenset[str]

    def answer(self) -> frozenset[str]:
        found: set[str] = set()
        for items in history_of(self.conversation_id, self.previous_id).back():
            found |= self.call_ids & all_call_ids(items)
            if found == self.call_ids:
                break
        return frozenset(found)


@dataclass(frozen=True)
class PreviousTurn:
    """The turn that new items follow, and how calls of earlier turns are found."""

    response: Response | None
    conversation_id: str | None
    find_calls: Callable[[CallsInHistory], frozenset[str]]  # a long read

    @property
    def output(self) -> list[Item]:
        if self.response is None:
            return []
        return self.response.output or []

    def earlier_calls(self, wanted: set[str]) -> frozenset[str]:
        if not wanted:
            return frozenset()
        previous_id = self.response.pk if self.response is not None else None
        calls = CallsInHistory(self.conversation_id, previous_id, frozenset(wanted))
        return self.find_calls(calls)


def check_answers(
    previous: PreviousTurn,
    items: list[Item],
    first_index: int = 0,
    location: Callable[[int], str] = "input[{}]".format,
) -> None:
    """Refuse new items that leave a call without its output, or answer a call that is unknown."""
    answered = output_ids(items)
    _check_open_calls(previous, answered)
    # Some clients answer a call whose arguments were cut off: no model sees that output.
    known = all_call_ids(items) | all_call_ids(previous.output)
    known |= previous.earlier_calls(answered - known)
    for index, item in enumerate(items, first_index):
        param = f"{location(index)}.call_id"
        kind = item["type"]
        if kind in OUTPUTS and item["call_id"] not in known:
            raise InvalidRequest(
                f"No tool call found for function call output with call_id {item['call_id']}.",
                param=param,
            )
        is_open = kind in CALLS and item["status"] != "incomplete"
        if is_open and item["call_id"] not in answered:
            raise InvalidRequest(
                f"No tool output found for function call {item['call_id']}.", param=param
            )


def _check_open_calls(previous: PreviousTurn, answered: set[str]) -> None:
    if previous.response is None or previous.response.status != "completed":
        return  # the runner closes the calls that an interrupted turn left open
    output = previous.output
    open_ids = call_ids(output) - output_ids(output) - answered
    if open_ids and previous.conversation_id is not None:
        calls = [item for item in output if item.get("call_id") in open_ids]
        open_ids = _open_in_conversation(previous.conversation_id, calls)
    if open_ids:
        call_id = min(open_ids)
        raise InvalidRequest(f"No tool output found for function call {call_id}.", param="input")


def _open_in_conversation(conversation_id: str, calls: list[Item]) -> set[str]:
    """A client may have added the output to the conversation, or removed the call from it."""
    ids = {item["id"]: item["call_id"] for item in calls}
    rows = ConversationItem.objects.filter(conversation_id=conversation_id, item_id__in=ids)
    positions = dict(rows.values_list("item_id", "position"))
    if not positions:
        return set()
    first = min(positions.values())
    later = readable_items(conversation_id).filter(position__gt=first).order_by("position")
    answered = output_ids(resolved(list(later)))
    return {ids[item_id] for item_id in positions} - answered
