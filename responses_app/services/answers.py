"""Every tool call a client was asked for has its answer, and every answer its call."""

from collections.abc import Callable

from responses_app.errors import InvalidRequest
from responses_app.fold import Item
from responses_app.models import Response
from responses_app.tool_items import CALLS, OUTPUTS, all_call_ids, call_ids, output_ids


def check_answers(
    last: Response | None, older: Callable[[], list[Item]], items: list[Item], first_index: int = 0
) -> None:
    """Do these new items fit behind the last turn, and behind everything older where that is needed?"""
    answered = output_ids(items)
    if last is not None:
        _check_open_calls(last, older, answered)
    # Some clients answer a call that was cut off in its arguments: let them, nobody is shown it.
    known = all_call_ids(items) | all_call_ids(last.output or [] if last is not None else [])
    if not answered <= known:
        known |= all_call_ids(older())
    for index, item in enumerate(items, first_index):
        if item["type"] in OUTPUTS and item["call_id"] not in known:
            raise InvalidRequest(
                f"No tool call found for function call output with call_id {item['call_id']}.",
                param=f"input[{index}].call_id",
            )
        if item["type"] in CALLS and item["status"] != "incomplete" and item["call_id"] not in answered:
            raise InvalidRequest(
                f"No tool output found for function call {item['call_id']}.", param=f"input[{index}].call_id"
            )


def _check_open_calls(last: Response, older: Callable[[], list[Item]], answered: set[str]) -> None:
    if last.status != "completed":
        return  # what an interrupted turn left open is closed for the model
    output = last.output or []
    left_open = call_ids(output) - output_ids(output) - answered
    if left_open:  # a conversation may have been told the answer, or lost the call, by other means
        history = older()
        left_open = (left_open & call_ids(history)) - output_ids(history)
    for call_id in sorted(left_open):
        raise InvalidRequest(f"No tool output found for function call {call_id}.", param="input")
