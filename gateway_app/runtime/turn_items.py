"""The conversation of a turn, as its model gets it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from django.conf import settings

from gateway_app.agent.budget import Budget
from gateway_app.agent.context import build_items
from gateway_app.agent.cut_message import with_joined_end
from gateway_app.runtime.requested_calls import RequestedCalls, read_requested
from gateway_app.runtime.resumption import ResumedTurn
from gateway_app.runtime.stored_images import with_stored_images
from gateway_app.runtime.turn_request import TurnRequest
from gateway_app.runtime.unseen_calls import HeldCall
from gateway_app.runtime.visible_results import ResultCap
from responses_app.models import Response, ToolEvent
from responses_app.protocol.items import Item, all_call_ids, output_ids
from responses_app.services.history.compaction import Expanded, expand
from responses_app.services.history.context import Context, read_context


@dataclass(frozen=True)
class TurnItems:
    visible: list[Item]
    older: Context
    progress: ResumedTurn
    approved: Mapping[str, int]  # call id -> the event of the ledger that has the approval


def read_items(
    row: Response,
    request: TurnRequest,
    progress: ResumedTurn,
    ledger: dict[str, ToolEvent],
    budget: Budget,
    cap: ResultCap,
) -> TurnItems:
    emitted = with_stored_images(progress.items, ledger)
    newer = expand(row.owner_id, request.new_input + emitted)
    older = _older_context(row, request, budget, newer)
    context_items = older.items + newer.items
    requested = read_requested(row, context_items, ledger, cap)
    progress = _with_requested(progress, requested)
    pending = {call.call_id for call in progress.pending}
    visible, notes = build_items(
        context_items, settings.HERMES_TOOL_LABELS, pending, requested.outputs
    )
    if progress.is_message_cut:
        visible = with_joined_end(visible)
    progress = replace(progress, notes=notes)
    return TurnItems(visible, older, progress, requested.approved)


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
    pending = progress.pending + tuple(requested.pending)
    return replace(progress, pending=pending, unseen=replace(progress.unseen, held=held))


def _answers_earlier_calls(items: list[Item]) -> bool:
    """Do they hold the output of a call that they do not hold?"""
    return bool(output_ids(items) - all_call_ids(items))
