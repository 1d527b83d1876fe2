"""Every tool call a client was asked for has its answer, and every answer its call."""

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
class CallsMade:
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
class Last:
    """The turn that new items follow, and how calls of earlier turns are looked for."""

    response: Response | None
    conversation_id: str | None
    ask: Callable[[CallsMade], frozenset[str]]  # a long read

    @property
    def output(self) -> list[Item]:
        return [] if self.response is None else self.response.output or []

    def made(self, wanted: set[str]) -> frozenset[str]:
        if not wanted:
            return frozenset()
        previous_id = None if self.response is None else self.response.pk
        return self.ask(CallsMade(self.conversation_id, previous_id, frozenset(wanted)))


def check_answers(last: Last, items: list[Item], first_index: int = 0) -> None:
    """Do these new items fit behind the last turn, and behind everything older where that is needed?"""
    answered = output_ids(items)
    _check_open_calls(last, answered)
    # Some clients answer a call that was cut off in its arguments: no model is shown the answer.
    known = all_call_ids(items) | all_call_ids(last.output)
    known |= last.made(answered - known)
    for index, item in enumerate(items, first_index):
        if item["type"] in OUTPUTS and item["call_id"] not in known:
            raise InvalidRequest(
                f"No tool call found for function call output with call_id {item['call_id']}.",
                param=f"input[{index}].call_id",
            )
        if (
            item["type"] in CALLS
            and item["status"] != "incomplete"
            and item["call_id"] not in answered
        ):
            raise InvalidRequest(
                f"No tool output found for function call {item['call_id']}.",
                param=f"input[{index}].call_id",
            )


def _check_open_calls(last: Last, answered: set[str]) -> None:
    if last.response is None or last.response.status != "completed":
        return  # what an interrupted turn left open is closed for the model
    open_ids = call_ids(last.output) - output_ids(last.output) - answered
    if open_ids and last.conversation_id is not None:
        calls = [item for item in last.output if item.get("call_id") in open_ids]
        open_ids = _open_in_conversation(last.conversation_id, calls)
    for call_id in sorted(open_ids):
        raise InvalidRequest(f"No tool output found for function call {call_id}.", param="input")


def _open_in_conversation(conversation_id: str, calls: list[Item]) -> set[str]:
    """A client may have added the output to the conversation, or taken the call out of it."""
    ids = {item["id"]: item["call_id"] for item in calls}
    rows = ConversationItem.objects.filter(conversation_id=conversation_id, item_id__in=ids)
    positions = dict(rows.values_list("item_id", "position"))
    if not positions:
        return set()
    first = min(positions.values())
    behind = readable_items(conversation_id).filter(position__gt=first).order_by("position")
    return {ids[item_id] for item_id in positions} - output_ids(resolved(list(behind)))
