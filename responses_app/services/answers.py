"""Every tool call a client was asked for has its answer, and every answer its call."""

from collections.abc import Callable

from responses_app.errors import InvalidRequest
from responses_app.fold import Item
from responses_app.models import Response


def check_answers(last: Response | None, older: Callable[[], list[Item]], items: list[Item]) -> None:
    """Do these new items fit behind the last turn, and behind everything older where that is needed?"""
    answered = {item["call_id"] for item in items if item["type"] == "function_call_output"}
    if last is not None:
        _check_open_calls(last, answered)
    known = calls_in(items) | calls_in(last.output or [] if last is not None else [])
    if not answered <= known:
        known |= calls_in(older())
    for index, item in enumerate(items):
        if item["type"] == "function_call_output" and item["call_id"] not in known:
            raise InvalidRequest(
                f"No tool call found for function call output with call_id {item['call_id']}.",
                param=f"input[{index}].call_id",
            )


def _check_open_calls(last: Response, answered: set[str]) -> None:
    if last.status != "completed":
        return  # what an interrupted turn left open is closed for the model
    output = last.output or []
    done = {item["call_id"] for item in output if item["type"] == "function_call_output"}
    for call_id in sorted(calls_in(output) - done - answered):
        raise InvalidRequest(f"No tool output found for function call {call_id}.", param="input")


def calls_in(items: list[Item]) -> set[str]:
    return {item["call_id"] for item in items if item["type"] == "function_call"}
