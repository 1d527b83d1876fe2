"""The messages of a session, oldest first, with those of the turns it was forked from."""

from typing import Any

from responses_app.models import InputItem, Response, Session
from responses_app.protocol.items import Item
from responses_app.protocol.status import IncompleteReason, Status
from responses_app.services.history.chain import ids_before
from responses_app.services.history.transcript import Message, messages_of

FINISH_REASONS = {
    Status.FAILED: "error",
    Status.CANCELLED: "cancelled",
    Status.INCOMPLETE: "incomplete",
}


def session_messages(session: Session) -> list[Message]:
    own = list(session.responses.filter(is_stored=True, deleted_at__isnull=True).order_by("turn"))
    before = _turns_in_front(session, own)
    inputs: dict[str, list[Item]] = {row.pk: [] for row in (*before, *own)}
    stored = InputItem.objects.filter(response_id__in=inputs).order_by("response_id", "position")
    for response_id, item in stored.values_list("response_id", "item"):
        inputs[response_id].append(item)
    turns = [turn_messages(row, inputs[row.pk]) for row in (*before, *own)]
    return [{**message, "session_id": session.public_id} for turn in turns for message in turn]


def turn_messages(row: Response, input_items: list[Item]) -> list[Message]:
    asked = messages_of(input_items)
    said = messages_of(row.output or [])
    ended_at = row.finished_at or row.created_at
    shown = [
        *({**message, **_facts(row.created_at.timestamp())} for message in asked),
        *({**message, **_facts(ended_at.timestamp())} for message in said),
    ]
    if said and said[-1]["role"] == "assistant":
        tokens = (row.usage or {}).get("output_tokens")
        shown[-1] |= {"finish_reason": _finish_reason(row, said[-1]), "token_count": tokens}
    return shown


def _turns_in_front(session: Session, own: list[Response]) -> list[Response]:
    start = session.fork_point_id or (own[0].previous_id if own else None)
    ids = ids_before(start)
    found = Response.objects.filter(deleted_at__isnull=True).in_bulk(ids)
    return [found[response_id] for response_id in ids if response_id in found]


def _facts(timestamp: float) -> dict[str, Any]:
    return {"timestamp": timestamp, "token_count": None, "finish_reason": None}


def _finish_reason(row: Response, last: Message) -> str:
    if row.incomplete_reason == IncompleteReason.MAX_OUTPUT_TOKENS:
        return "length"
    return FINISH_REASONS.get(Status(row.status), "tool_calls" if last["tool_calls"] else "stop")
