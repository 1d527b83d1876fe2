"""What a model is told, read when its turn starts: a turn before it may just have ended."""

from dataclasses import dataclass

from django.conf import settings

from gateway_app.agent.context import as_note, build_items
from gateway_app.agent.parameters import MODEL_PARAMETERS
from gateway_app.agent.said import CONTINUE
from gateway_app.agent.types import ModelCall, ModelFailed
from gateway_app.runtime.agents import Agent, agent_of
from gateway_app.runtime.resumption import Resumed, read_so_far
from responses_app.errors import InvalidRequest
from responses_app.events import Event
from responses_app.fold import Item
from responses_app.models import Response, Session, ToolEvent
from responses_app.models.responses import Kind
from responses_app.output import OutputBuilder
from responses_app.requests.options import CLIENT_TOOLS
from responses_app.requests.server_tools import is_own
from responses_app.services.admission import Admission
from responses_app.services.answers import check_answers
from responses_app.services.conversations import items_of
from responses_app.services.history import effective_instructions, input_of, turns_before
from responses_app.states import Status
from responses_app.tokens import newest_that_fit

CHAT_FIELDS = "chat"  # under this name a stored chat request keeps what the Responses API has no word for


@dataclass(frozen=True)
class Brief:
    """All a turn needs to begin, or to go on."""

    agent: Agent
    call: ModelCall
    so_far: Resumed
    ledger: dict[str, ToolEvent]
    left_out: int  # items of the oldest turns, for which there was no room


def brief_turn(row: Response, kept_in_memory: object, history: list[Event], builder: OutputBuilder) -> Brief:
    _check_conversation(row)
    ledger = {event.call_id: event for event in ToolEvent.objects.filter(response_id=row.pk)} if row.attempt > 1 else {}
    so_far = read_so_far(history, builder, ledger)
    agent = agent_of(row.model)
    call, left_out = _brief_model(row, kept_in_memory, so_far, agent)
    return Brief(agent, call, so_far, ledger, left_out)


def _brief_model(row: Response, kept_in_memory: object, so_far: Resumed, agent: Agent) -> tuple[ModelCall, int]:
    turns = turns_before(row.previous_id) if row.conversation_id is None else []
    before = [] if row.conversation_id is None else items_of(row.conversation_id)
    before += [item for turn in turns for item in (*turn.input, *turn.output)]
    if isinstance(kept_in_memory, Admission):
        request, new_input = kept_in_memory.request, kept_in_memory.items
    else:
        request, new_input = row.request, input_of(row.pk)
    _check_parent(row, before, new_input)
    tools = request.get("tools")
    inherited = [] if row.is_history_resent else turns
    wanted = effective_instructions(request.get("instructions"), inherited)
    of_session = Session.objects.values_list("instructions", flat=True).get(pk=row.session_id)
    instructions = "\n\n".join(filter(None, (agent.instructions, of_session, wanted))) or None
    kept = before
    if request.get("truncation") == "auto" and agent.context_window:
        kept = newest_that_fit(before, agent.context_window, [*new_input, *so_far.items], instructions, tools or [])
    pending = {call.call_id for call in so_far.pending}
    cut = [as_note(CONTINUE)] if so_far.is_message_cut else []
    is_chat = row.kind == Kind.CHAT
    call = ModelCall(
        model=row.model,
        items=build_items([*kept, *new_input, *so_far.items, *cut], settings.HERMES_TOOL_LABELS, pending),
        instructions=instructions,
        tools=agent.tools(tools),
        used_call_ids=so_far.used_call_ids,
        client_tools=tuple(tool for tool in tools or () if tool["type"] in CLIENT_TOOLS),
        hosted_tools=tuple(tool for tool in tools or () if tool["type"] not in CLIENT_TOOLS and not is_own(tool)),
        extras={} if is_chat else {name: request[name] for name in row.ignored if name in request},
        chat_extras=request.get(CHAT_FIELDS, {}) if is_chat else {},
        tool_choice=request.get("tool_choice") or "auto",
        max_output_tokens=request.get("max_output_tokens"),
        max_tool_calls=request.get("max_tool_calls"),
        parameters={name: request[name] for name in MODEL_PARAMETERS if request.get(name) is not None},
    )
    return call, len(before) - len(kept)


def _check_conversation(row: Response) -> None:
    if row.conversation_id is None and row.request.get("conversation") is not None:
        raise ModelFailed("The conversation was deleted while this response waited for its turn.", "invalid_prompt")


def _check_parent(row: Response, older: list[Item], new_input: list[Item]) -> None:
    """A turn that waited was admitted before anybody knew which calls its parent would leave open."""
    if row.status != Status.QUEUED or row.previous_id is None:
        return
    previous = Response.objects.get(pk=row.previous_id)
    try:
        check_answers(previous, lambda: older, new_input)
    except InvalidRequest as error:
        raise ModelFailed(error.message, "invalid_prompt") from None
