"""What a model is sent, read when its turn starts: the turn before it may have just ended."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC
from functools import partial

from django.conf import settings

from gateway_app.agent.budget import Budget
from gateway_app.agent.compaction import CompactionTurn
from gateway_app.agent.context import build_items
from gateway_app.agent.cut_message import with_joined_end
from gateway_app.agent.model_call import ModelCall
from gateway_app.documents.readers import current_owner
from gateway_app.runtime.additional_tools import OfferedTools
from gateway_app.runtime.agents import Agent, agent_of, available_tools
from gateway_app.runtime.compaction_request import build_compaction_turn
from gateway_app.runtime.file_texts import call_with_file_texts, with_file_texts
from gateway_app.runtime.notes import turn_facts
from gateway_app.runtime.requested_calls import RequestedCalls, read_requested
from gateway_app.runtime.resumption import EarlierAttempts, ResumedTurn, read_progress
from gateway_app.runtime.stored_images import with_stored_images
from gateway_app.runtime.turn_request import TurnRequest, read_instructions, read_request
from gateway_app.runtime.unseen_calls import HeldCall
from gateway_app.runtime.visible_results import ResultCap
from responses_app.database import database
from responses_app.eventlog import AdmittedRequest
from responses_app.models import Response, ToolEvent
from responses_app.protocol.items import Item, all_call_ids, output_ids
from responses_app.services.history.compaction import Expanded, expand
from responses_app.services.history.context import Context, read_context
from responses_app.services.lifecycle.claim import FreshTurn

DEFAULT_SHARE = 0.8  # of the window, where a request asks for compaction and the server does not
COMPACT_TOKENS = 100_000  # where a request asks for compaction, and the window is not known


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
    deviations: tuple[str, ...] = ()  # what the model's server does not take


async def read_turn_context(
    row: Response,
    admitted: AdmittedRequest | None,
    fresh: FreshTurn | None,
    earlier: EarlierAttempts,
    missing_servers: Sequence[str],
) -> TurnContext:
    """The admission of a fresh turn knows all of it, unless there is a turn before."""
    current_owner.set(row.owner_id)  # in the context of the turn's own task
    build = partial(build_turn_context, row, admitted, earlier, missing_servers, fresh)
    has_history = row.previous_id is not None or row.conversation_id is not None
    if fresh is None or has_history:
        context = await database.read_with_retry(build)
    else:
        context = await database.look_up_with_retry(build)
    if context.compaction is not None:
        return context
    takes_files = context.agent.takes_files()
    call, deviations = await call_with_file_texts(context.call, takes_files=takes_files)
    return replace(context, call=call, deviations=deviations)


def build_turn_context(
    row: Response,
    admitted: AdmittedRequest | None,
    earlier: EarlierAttempts,
    missing_servers: Sequence[str] = (),
    fresh: FreshTurn | None = None,
) -> TurnContext:
    ledger = {}
    progress = ResumedTurn()
    if row.attempt > 1:
        for event in ToolEvent.objects.filter(response_id=row.pk):
            ledger[event.call_id] = event
    request = read_request(row, admitted)
    agent = agent_of(row.model)
    if row.attempt > 1:
        progress = read_progress(earlier.events, earlier.builder, ledger, _cap(agent))
    if request.is_compaction:
        compaction = build_compaction_turn(row, request, progress, _budget(request, agent))
        return TurnContext(agent, compaction.call, progress, ledger, compaction=compaction)
    return _model_context(row, request, fresh, progress, agent, ledger, missing_servers)


def _model_context(
    row: Response,
    request: TurnRequest,
    fresh: FreshTurn | None,
    progress: ResumedTurn,
    agent: Agent,
    ledger: dict[str, ToolEvent],
    missing_servers: Sequence[str],
) -> TurnContext:
    tools = request.fields.get("tools")
    own_tools = agent.tools(tools, row.client_tools)
    # The day of the response, so that all attempts send the same.
    core_prompt = agent.core_prompt(row.created_at.astimezone(UTC).date(), own_tools)
    facts = turn_facts(row, fresh, own_tools, missing_servers, agent.window().tokens)
    instructions = read_instructions(row, request, fresh, core_prompt, agent.instructions, facts)
    newer = expand(row.owner_id, [*request.new_input, *with_stored_images(progress.items, ledger)])
    budget = _budget(request, agent)
    older = _older_context(row, request, budget, newer)
    context_items = older.items + newer.items
    requested = read_requested(row, context_items, ledger, _cap(agent))
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
        tool_choice=request.fields.get("tool_choice") or "auto",
        max_output_tokens=request.fields.get("max_output_tokens"),
        max_tool_calls=request.fields.get("max_tool_calls"),
        max_iterations=agent.max_iterations,
        compact_threshold=_compact_threshold(request, agent, budget),
        budget=budget,
        parameters=request.model_parameters(),
        cut_at=progress.cut_at,
        resume=progress.resume,
        is_stored=row.is_stored,
        file_texts=with_file_texts,
    )
    kept_items = None
    if older.is_cut:
        kept_items = len(older.items)
    progress = replace(progress, notes=notes)
    return TurnContext(agent, call, progress, ledger, kept_items, approved=requested.approved)


def _cap(agent: Agent) -> ResultCap:
    return ResultCap(agent.window().tokens, available_tools())


def _older_context(row: Response, request: TurnRequest, budget: Budget, newer: Expanded) -> Context:
    """The turns before, without the oldest where they do not fit."""
    if newer.replaces_all:
        return Context([])
    room = None
    if budget.is_truncating and budget.window and not _answers_earlier_calls(newer.items):
        room = budget.room(0)  # the loop drops more, where the rest of the request is long
    return read_context(row.owner_id, request.history, room)


def _with_requested(progress: ResumedTurn, requested: RequestedCalls) -> ResumedTurn:
    """Calls that the client has approved run before the model is asked."""
    held = dict(progress.unseen.held)
    for call in requested.pending:
        held[call.call_id] = HeldCall(call.name, call.arguments, request_id=call.call_id)
    pending = (*progress.pending, *requested.pending)
    return replace(progress, pending=pending, unseen=replace(progress.unseen, held=held))


def _budget(request: TurnRequest, agent: Agent) -> Budget:
    is_truncating = request.fields.get("truncation") == "auto"
    is_managed = bool(request.fields.get("context_management"))
    return Budget(
        window=agent.window().tokens,
        is_truncating=is_truncating,
        is_compacting=is_managed or (agent.compact_share > 0 and not is_truncating),
        sent_reasoning=agent.sent_reasoning(),
        correction=agent.correction(),
        max_tokens=agent.max_tokens(),
    )


def _compact_threshold(request: TurnRequest, agent: Agent, budget: Budget) -> int | None:
    """A request that drops its oldest turns is not compacted, unless it asks for that too."""
    share = agent.compact_share
    entries = request.fields.get("context_management")
    if entries:
        by_window = int(budget.window * (share or DEFAULT_SHARE))
        return int(entries[0].get("compact_threshold") or by_window or COMPACT_TOKENS)
    if not budget.is_compacting or not budget.window:
        return None
    threshold = int(budget.window * share)
    max_tokens = request.fields.get("max_output_tokens") or budget.max_tokens
    if max_tokens is None:
        return threshold
    return min(threshold, budget.window - budget.reserve(max_tokens))


def _answers_earlier_calls(items: list[Item]) -> bool:
    """Do they hold the output of a call that they do not hold?"""
    return bool(output_ids(items) - all_call_ids(items))
