"""The model call of a compaction: everything before it, to be summarised."""

from django.conf import settings

from gateway_app.agent.budget import Budget
from gateway_app.agent.compaction import CompactionTurn, unreadable
from gateway_app.agent.context import build_items
from gateway_app.agent.model_call import ModelCall
from gateway_app.runtime.file_texts import with_file_texts
from gateway_app.runtime.resumption import ResumedTurn
from gateway_app.runtime.turn_request import TurnRequest
from responses_app.models import Response
from responses_app.protocol.items import MARK, Item
from responses_app.services.history.compaction import expand
from responses_app.services.history.context import read_context


def build_compaction_turn(
    row: Response, request: TurnRequest, progress: ResumedTurn, budget: Budget
) -> CompactionTurn:
    """The user's messages are kept word for word; the model summarises everything."""
    newer = expand(row.owner_id, request.new_input)
    items = newer.items
    if not newer.replaces_all:
        older = read_context(row.owner_id, request.history)
        items = older.items + newer.items
    visible, _ = build_items(items, settings.HERMES_TOOL_LABELS)
    call = ModelCall(
        row.model,
        visible,
        instructions=request.fields.get("instructions"),
        parameters=request.model_parameters(),
        budget=budget,
        file_texts=with_file_texts,
    )
    return CompactionTurn(
        call,
        kept=tuple(_user_messages(items)[_message_count(progress) :]),
        carried=tuple(unreadable(items)),
    )


def _user_messages(items: list[Item]) -> list[Item]:
    """Without those that are part of an earlier compaction."""
    found = []
    for item in items:
        if item["type"] == "message" and MARK not in item and item["role"] == "user":
            found.append(item)
    return found


def _message_count(progress: ResumedTurn) -> int:
    """How many of the kept messages an earlier attempt has sent."""
    return sum(item["type"] == "message" for item in progress.items)
