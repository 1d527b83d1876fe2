"""What a model is sent, read when its turn starts: the turn before it may have just ended."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from gateway_app.agent.compaction import CompactionTurn
from gateway_app.agent.model_call import ModelCall
from gateway_app.documents.readers import current_owner
from gateway_app.runtime.agents import Agent, agent_of
from gateway_app.runtime.compaction_request import build_compaction_turn
from gateway_app.runtime.file_texts import call_with_file_texts
from gateway_app.runtime.resumption import EarlierAttempts, ResumedTurn, read_progress
from gateway_app.runtime.turn_budget import result_cap, turn_budget
from gateway_app.runtime.turn_call import build_call
from gateway_app.runtime.turn_items import read_items
from gateway_app.runtime.turn_request import read_request
from responses_app.database import database
from responses_app.eventlog import AdmittedRequest
from responses_app.models import Response, ToolEvent
from responses_app.services.lifecycle.claim import FreshTurn


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
    if call is context.call:
        return context
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
        progress = read_progress(earlier.events, earlier.builder, ledger, result_cap(agent))
    budget = turn_budget(request, agent)
    if request.is_compaction:
        compaction = build_compaction_turn(row, request, progress, budget)
        return TurnContext(agent, compaction.call, progress, ledger, compaction=compaction)
    items = read_items(row, request, progress, ledger, budget, result_cap(agent))
    call = build_call(row, request, fresh, agent, items, budget, missing_servers)
    kept_items = None
    if items.older.is_cut:
        kept_items = len(items.older.items)
    return TurnContext(agent, call, items.progress, ledger, kept_items, approved=items.approved)
