"""The end of a turn that does not end by itself: its last round, and what the model is sent then."""

from dataclasses import replace

from gateway_app.agent.context import as_note
from gateway_app.agent.model_call import ModelCall
from gateway_app.agent.repeats import Repeats

TOO_MANY_CALLS = "Not carried out: this turn may call tools {limit} times (max_tool_calls)."
TOO_MANY_ROUNDS = "Not carried out: this turn has no more rounds for tools (max_iterations)."
LAST_ROUND = (
    "This is the last step of this turn, and no more tools can be called in it. Answer in words now: "
    "what was found and done, and what is left."
)
EMPTY = "Your answer is empty. Answer the user now, in words, with what the tools have returned."
AT_LIMIT = "The turn reached its limit of {limit} rounds with the model."
IN_A_LOOP = "The model kept repeating a call that has the same result each time."


def without_server_tools(call: ModelCall) -> ModelCall:
    """The client's tools stay: a call of one of them ends the turn too."""
    choice = call.tool_choice
    if choice not in ("auto", "none"):
        choice = "auto"
    items = [*call.items, as_note(LAST_ROUND)]
    return replace(call, items=items, tools=(), tool_choice=choice)


def limit_message(call: ModelCall, repeats: Repeats) -> str:
    if repeats.must_stop:
        return IN_A_LOOP
    return AT_LIMIT.format(limit=call.max_iterations)
