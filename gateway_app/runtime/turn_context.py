"""What a model is sent, read when its turn starts: the turn before it may have just ended."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC

from django.conf import settings

from gateway_app.agent.compaction import CompactionTurn
from gateway_app.agent.context import build_items
from gateway_app.agent.cut_message import with_joined_end
from gateway_app.agent.model_call import ModelCall
from gateway_app.runtime.additional_tools import OfferedTools
from gateway_app.runtime.agents import Agent, agent_of
from gateway_app.runtime.compaction_request import build_compaction_turn
from gateway_app.runtime.notes import turn_facts
from gateway_app.runtime.requested_calls import RequestedCalls, read_requested
from gateway_app.runtime.resumption import EarlierAttempts, ResumedTurn, read_progress
from gateway_app.runtime.tool_outputs import with_stored_images
from gateway_app.runtime.turn_request import TurnRequest, read_instructions, read_request
from gateway_app.runtime.unseen_calls import HeldCall
from responses_app.eventlog import AdmittedRequest
from responses_app.models import Response, ToolEvent
from responses_app.protocol.items import all_call_ids
from responses_app.protocol.token_estimate import estimate_tokens
from responses_app.services.history.compaction import expand
from responses_app.services.history.context import Context, read_context

# The length at which a conversation is compacted, where a request does not set it.
COMPACT_SHARE = 0.8  # of the context window
COMPACT_TOKENS = 100_000  # where the window is not known


@dataclass(frozen=True)
class TurnContext:
    """All a turn needs to begin, or to go on."""

    agent: Agent
    call: ModelCall
    progress: ResumedTurn
    ledger: dict[str, ToolEvent]
    kept_items: int | None = None  # of the turns before, where the oldest of them did not fit
    compaction: CompactionTurn | None = None  # where the turn is a compaction
    # Call id -> the event of the ledger that has the client's approval of an earlier turn's call.
    approved: Mapping[str, int] = field(default_factory=dict)


def build_turn_context(
    row: Response,
    admitted: AdmittedRequest | None,
    earlier: EarlierAttempts,
    missing_servers: Sequence[str] = (),
) -> TurnContext:
    ledger = {}
    progress = ResumedTurn()
    if row.attempt > 1:
        for event in ToolEvent.objects.filter(response_id=row.pk):
            ledger[event.call_id] = event
        progress = read_progress(earlier.events, earlier.builder, ledger)
    request = read_request(row, admitted)
    agent = agent_of(row.model)
    if request.is_compaction:
        compaction = build_compaction_turn(row, request, progress)
        return TurnContext(agent, compaction.asked, progress, ledger, compaction=compaction)
    return _model_context(row, request, progress, agent, ledger, missing_servers)


def _model_context(
    row: Response,
    request: TurnRequest,
    progress: ResumedTurn,
    agent: Agent,
    ledger: dict[str, ToolEvent],
    missing_servers: Sequence[str],
) -> TurnContext:
    fields = request.fields
    tools = fields.get("tools")
    own_tools = agent.tools(tools, row.client_tools)
    # The day of the response, so that all attempts send the same.
    core_prompt = agent.core_prompt(row.created_at.astimezone(UTC).date(), own_tools)
    facts = turn_facts(row, {tool.name for tool in own_tools}, missing_servers)
    instructions = read_instructions(row, request, core_prompt, agent.instructions, facts)
    newer = expand(row.owner_id, [*request.new_input, *with_stored_images(progress.items, ledger)])
    older = Context([])
    if not newer.replaces_all:
        room = None
        if fields.get("truncation") == "auto" and agent.context_window:
            room = agent.context_window - estimate_tokens(newer.items, instructions, tools or [])
        older = read_context(row.owner_id, request.history, room)
    context_items = older.items + newer.items
    requested = read_requested(row, context_items, ledger)
    progress = _with_requested(progress, requested)
    pending = {call.call_id for call in progress.pending}
    items, notes = build_items(
        context_items, settings.HERMES_TOOL_LABELS, pending, requested.outputs
    )
    if progress.is_message_cut:
        items = with_joined_end(items)
    offered = OfferedTools(agent, tools, items, row.client_tools)
    call = ModelCall(
        model=row.model,
        items=offered.other_items,
        instructions=instructions,
        core_prompt=core_prompt,
        tools=offered.of_server(),
        used_call_ids=progress.used_call_ids | all_call_ids(older.items + request.new_input),
        client_tools=offered.of_client(),
        hosted_tools=offered.of_upstream(),
        extras=request.upstream_fields(),
        chat_extras=request.chat_fields(),
        tool_choice=fields.get("tool_choice") or "auto",
        max_output_tokens=fields.get("max_output_tokens"),
        max_tool_calls=fields.get("max_tool_calls"),
        compact_threshold=_compact_threshold(request, agent),
        parameters=request.model_parameters(),
        cut_at=progress.cut_at,
        resume=progress.resume,
        is_stored=row.is_stored,
    )
    kept_items = None
    if older.is_cut:
        kept_items = len(older.items)
    progress = replace(progress, notes=notes)
    return TurnContext(agent, call, progress, ledger, kept_items, approved=requested.approved)


def _with_requested(progress: ResumedTurn, requested: RequestedCalls) -> ResumedTurn:
    """Calls that the client has approved run before the model is asked."""
    held = dict(progress.unseen.held)
    for call in requested.pending:
        held[call.call_id] = HeldCall(call.name, call.arguments, request_id=call.call_id)
    pending = (*progress.pending, *requested.pending)
    return replace(progress, pending=pending, unseen=replace(progress.unseen, held=held))


def _compact_threshold(request: TurnRequest, agent: Agent) -> int | None:
    entries = request.fields.get("context_management")
    if not entries:
        return None
    by_window = int(agent.context_window * COMPACT_SHARE)
    return int(entries[0].get("compact_threshold") or by_window or COMPACT_TOKENS)
