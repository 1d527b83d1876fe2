"""Every tool call a client was asked for has its answer, and every answer its call."""

from collections.abc import Callable

from responses_app.errors import InvalidRequest
from responses_app.fold import Item
from responses_app.models import Response


def check_answers(
    last: Response | None, older: Callable[[], list[Item]], items: list[Item], first_index: int = 0
) -> None:
    """Do these new items fit behind the last turn, and behind everything older where that is needed?"""
    answered = _ids_of("function_call_output", items)
    if last is not None:
        _check_open_calls(last, older, answered)
    known = calls_in(items) | calls_in(last.output or [] if last is not None else [])
    if not answered <= known:
        known |= calls_in(older())
    for index, item in enumerate(items, first_index):
        if item["type"] == "function_call_output" and item["call_id"] not in known:
            raise InvalidRequest(
                f"No tool call found for function call output with call_id {item['call_id']}.",
                param=f"input[{index}].call_id",
            )


def _check_open_calls(last: Response, older: Callable[[], list[Item]], answered: set[str]) -> None:
    if last.status != "completed":
        return  # what an interrupted turn left open is closed for the model
    output = last.output or []
    left_open = calls_in(output) - _ids_of("function_call_output", output) - answered
    if left_open:  # a conversation may have been told the answer, or lost the call, by other means
        history = older()
        left_open = (left_open & calls_in(history)) - _ids_of("function_call_output", history)
    for call_id in sorted(left_open):
        raise InvalidRequest(f"No tool output found for function call {call_id}.", param="input")


def calls_in(items: list[Item]) -> set[str]:
    return _ids_of("function_call", items)


def _ids_of(kind: str, items: list[Item]) -> set[str]:
    return {item["call_id"] for item in items if item["type"] == kind}
