"""What a model is told, read when its turn starts: a turn before it may just have ended."""

from gateway_app.agent.context import build_items
from gateway_app.agent.types import ModelCall, ModelFailed
from gateway_app.tools import TOOLS
from responses_app.errors import InvalidRequest
from responses_app.fold import Item
from responses_app.models import Response
from responses_app.services.admit import Admission
from responses_app.services.answers import check_answers
from responses_app.services.conversations import items_of
from responses_app.services.history import effective_instructions, input_of, turns_before
from responses_app.states import Status

# Fields of a request that are the model's business alone.
MODEL_PARAMETERS = (
    "include",
    "metadata",
    "parallel_tool_calls",
    "prompt_cache_key",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "temperature",
    "text",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
)


def brief_model(row: Response, kept_in_memory: object) -> ModelCall:
    turns = turns_before(row.previous_id) if row.conversation_id is None else []
    before = [] if row.conversation_id is None else items_of(row.conversation_id)
    if isinstance(kept_in_memory, Admission):
        request, new_input = kept_in_memory.request, kept_in_memory.items
    else:
        request, new_input = row.request, input_of(row.pk)
    _check_parent(row, [*before, *(item for turn in turns for item in (*turn.input, *turn.output))], new_input)
    tools = request.get("tools")
    inherited = [] if row.is_history_resent else turns
    return ModelCall(
        model=row.model,
        items=build_items([(before, []), *((turn.input, turn.output) for turn in turns)], new_input),
        instructions=effective_instructions(request.get("instructions"), inherited),
        tools=tuple(TOOLS.values()) if tools is None else (),
        client_tools=tuple(tool for tool in tools or () if tool["type"] == "function"),
        hosted_tools=tuple(tool for tool in tools or () if tool["type"] != "function"),
        extras={name: request[name] for name in row.ignored if name in request},
        tool_choice=request.get("tool_choice") or "auto",
        max_output_tokens=request.get("max_output_tokens"),
        max_tool_calls=request.get("max_tool_calls"),
        parameters={name: request[name] for name in MODEL_PARAMETERS if request.get(name) is not None},
    )


def _check_parent(row: Response, older: list[Item], new_input: list[Item]) -> None:
    """A turn that waited was admitted before anybody knew which calls its parent would leave open."""
    if row.status != Status.QUEUED or row.previous_id is None:
        return
    previous = Response.objects.get(pk=row.previous_id)
    try:
        check_answers(previous, lambda: older, new_input)
    except InvalidRequest as error:
        raise ModelFailed(error.message, "invalid_prompt") from None
