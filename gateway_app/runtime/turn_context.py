"""What a model is told, read when its turn starts: a turn before it may just have ended."""

from dataclasses import dataclass, replace
from typing import Any

from django.conf import settings

from gateway_app.agent.answer_buffer import CONTINUE
from gateway_app.agent.compaction import CompactionTurn, summary_call, unreadable
from gateway_app.agent.context import as_note, build_items
from gateway_app.agent.events import ModelFailed
from gateway_app.agent.model_call import MODEL_PARAMETERS, ModelCall
from gateway_app.runtime.agents import Agent, agent_of
from gateway_app.runtime.resumption import ResumedTurn, read_progress
from responses_app.models import Response, Session, ToolEvent
from responses_app.models.responses import Kind
from responses_app.protocol.builder import OutputBuilder
from responses_app.protocol.errors import InvalidRequest
from responses_app.protocol.events import Event
from responses_app.protocol.items import MARK, Item, all_call_ids
from responses_app.protocol.status import Status
from responses_app.protocol.token_estimate import estimate_tokens
from responses_app.requests.options import CLIENT_TOOLS
from responses_app.requests.tools import is_own
from responses_app.services.history.call_answers import CallsMade, Last, check_answers
from responses_app.services.history.chain import input_of
from responses_app.services.history.chain_values import inherited_instructions
from responses_app.services.history.compaction import expand
from responses_app.services.history.context import (
    Context,
    History,
    history_of,
    read_context,
)
from responses_app.services.lifecycle.admission import Admission

# Where a request leaves it to us at which length a conversation is compacted.
COMPACT_SHARE = 0.8  # of the context window
COMPACT_TOKENS = 100_000  # where that is not known
CHAT_FIELDS = (
    "chat"  # under this name a stored chat request keeps what the Responses API has no word for
)


@dataclass(frozen=True)
class TurnContext:
    """All a turn needs to begin, or to go on."""

    agent: Agent
    call: ModelCall
    so_far: ResumedTurn
    ledger: dict[str, ToolEvent]
    kept_items: int | None = None  # of the turns before, where the oldest of them did not fit
    recap: CompactionTurn | None = None  # where the turn is a compaction


def build_turn_context(
    row: Response, kept_in_memory: object, history: list[Event], builder: OutputBuilder
) -> TurnContext:
    _check_conversation(row)
    ledger = (
        {event.call_id: event for event in ToolEvent.objects.filter(response_id=row.pk)}
        if row.attempt > 1
        else {}
    )
    so_far = read_progress(history, builder, ledger)
    agent = agent_of(row.model)
    asked = _read_asked(row, kept_in_memory)
    if row.kind == Kind.COMPACTION:
        return _compaction_context(row, asked, so_far, agent)
    return _model_context(row, asked, so_far, agent, ledger)


@dataclass(frozen=True)
class _Asked:
    """A request, and the conversation it goes on from: read only as far as the model is sent it."""

    request: dict[str, Any]
    ignored: tuple[str, ...]
    new_input: list[Item]
    history: History


def _read_asked(row: Response, kept_in_memory: object) -> _Asked:
    if isinstance(kept_in_memory, Admission):
        request, new_input = kept_in_memory.request, kept_in_memory.items
        ignored = kept_in_memory.ignored
    else:
        request, new_input = row.request, input_of(row.pk)
        ignored = tuple(row.ignored)
    _check_parent(row, new_input)
    history = history_of(row.conversation_id, row.previous_id)
    return _Asked(request, ignored, new_input, history)


def _compaction_context(
    row: Response, asked: _Asked, so_far: ResumedTurn, agent: Agent
) -> TurnContext:
    """The words of the user stay; the model is asked for a summary of everything."""
    newer = expand(row.owner_id, asked.new_input)
    older = [] if newer.replaces_all else read_context(row.owner_id, asked.history).items
    items = [*older, *newer.items]
    messages = [item for item in items if item["type"] == "message" and MARK not in item]
    said = [item for item in messages if item["role"] == "user"]
    is_told = sum(item["type"] == "message" for item in so_far.items)
    shown, _ = build_items(items, settings.HERMES_TOOL_LABELS)
    call = ModelCall(row.model, shown, parameters=_parameters(asked.request))
    summary = summary_call(call, call.items, asked.request.get("instructions"))
    return TurnContext(
        agent,
        call,
        so_far,
        {},
        recap=CompactionTurn(summary, tuple(said[is_told:]), tuple(unreadable(items))),
    )


def _model_context(
    row: Response, asked: _Asked, so_far: ResumedTurn, agent: Agent, ledger: dict[str, ToolEvent]
) -> TurnContext:
    request = asked.request
    tools = request.get("tools")
    instructions = _instructions(row, request, agent)
    newer = expand(row.owner_id, [*asked.new_input, *so_far.items])
    older = Context([])
    if not newer.replaces_all:
        room = None
        if request.get("truncation") == "auto" and agent.context_window:
            room = agent.context_window - estimate_tokens(newer.items, instructions, tools or [])
        older = read_context(row.owner_id, asked.history, room)
    pending = {call.call_id for call in so_far.pending}
    cut = [as_note(CONTINUE)] if so_far.is_message_cut else []
    shown = [*older.items, *newer.items, *cut]
    items, notes = build_items(shown, settings.HERMES_TOOL_LABELS, pending)
    is_chat = row.kind == Kind.CHAT
    unknown = {name: request[name] for name in asked.ignored if name in request}
    call = ModelCall(
        model=row.model,
        items=items,
        instructions=instructions,
        tools=agent.tools(tools),
        used_call_ids=so_far.used_call_ids | all_call_ids([*older.items, *asked.new_input]),
        client_tools=tuple(tool for tool in tools or () if tool["type"] in CLIENT_TOOLS),
        hosted_tools=tuple(
            tool for tool in tools or () if tool["type"] not in CLIENT_TOOLS and not is_own(tool)
        ),
        extras={} if is_chat else unknown,
        chat_extras=request.get(CHAT_FIELDS, {}) if is_chat else {},
        tool_choice=request.get("tool_choice") or "auto",
        max_output_tokens=request.get("max_output_tokens"),
        max_tool_calls=request.get("max_tool_calls"),
        compact_threshold=_compact_threshold(request, agent),
        parameters=_parameters(request),
    )
    kept_items = len(older.items) if older.is_cut else None
    return TurnContext(agent, call, replace(so_far, notes=notes), ledger, kept_items)


def _instructions(row: Response, request: dict[str, Any], agent: Agent) -> str | None:
    """The profile's, the session's, and the request's own or those it inherits along its chain."""
    wanted = request.get("instructions")
    if wanted is None and row.conversation_id is None and not row.is_history_resent:
        wanted = inherited_instructions(row.previous_id)
    of_session = Session.objects.values_list("instructions", flat=True).get(pk=row.session_id)
    return "\n\n".join(filter(None, (agent.instructions, of_session, wanted))) or None


def _parameters(request: dict[str, Any]) -> dict[str, Any]:
    return {name: request[name] for name in MODEL_PARAMETERS if request.get(name) is not None}


def _compact_threshold(request: dict[str, Any], agent: Agent) -> int | None:
    for entry in request.get("context_management") or ():
        by_window = int(agent.context_window * COMPACT_SHARE)
        return int(entry.get("compact_threshold") or by_window or COMPACT_TOKENS)
    return None


def _check_conversation(row: Response) -> None:
    if row.kind == Kind.COMPACTION:
        return  # it takes no conversation, and names the field as ignored
    if row.conversation_id is None and row.request.get("conversation") is not None:
        raise ModelFailed(
            "The conversation was deleted while this response waited for its turn.",
            "invalid_prompt",
        )


def _check_parent(row: Response, new_input: list[Item]) -> None:
    """A turn that waited was admitted before its parent had ended, perhaps with open calls."""
    if row.status != Status.QUEUED or row.previous_id is None:
        return
    previous = Response.objects.get(pk=row.previous_id)
    try:
        check_answers(Last(previous, row.conversation_id, CallsMade.answer), new_input)
    except InvalidRequest as error:
        raise ModelFailed(error.message, "invalid_prompt") from None
