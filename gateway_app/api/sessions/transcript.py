"""The messages of a session, oldest first, after those of the turns it was forked from."""

from datetime import datetime
from typing import Any

from responses_app.models import Response, Session
from responses_app.protocol.items import Item
from responses_app.protocol.status import IncompleteReason, Status
from responses_app.services.history.chain import ids_before, inputs_of
from responses_app.services.history.transcript import Message, messages_of

FINISH_REASONS = {
    Status.FAILED: "error",
    Status.CANCELLED: "cancelled",
    Status.INCOMPLETE: "incomplete",
}


def session_messages(session: Session) -> list[Message]:
    own = list(session.responses.filter(is_stored=True, deleted_at__isnull=True).order_by("turn"))
    turns = _turns_in_front(session, own) + own
    inputs = inputs_of([row.pk for row in turns])
    messages: list[Message] = []
    for row in turns:
        for message in turn_messages(row, inputs[row.pk]):
            message["session_id"] = session.public_id
            messages.append(message)
    return messages


def turn_messages(row: Response, input_items: list[Item]) -> list[Message]:
    messages: list[Message] = []
    for message in messages_of(input_items):
        messages.append(message | _facts(row.created_at))
    ended_at = row.finished_at or row.created_at
    output = messages_of(row.output or [])
    for message in output:
        messages.append(message | _facts(ended_at))
    if output and output[-1]["role"] == "assistant":
        messages[-1]["finish_reason"] = _finish_reason(row, output[-1])
        messages[-1]["token_count"] = (row.usage or {}).get("output_tokens")
    return messages


def _turns_in_front(session: Session, own: list[Response]) -> list[Response]:
    start = session.fork_point_id
    if not start and own:
        start = own[0].previous_id
    ids = ids_before(start)
    found = Response.objects.filter(deleted_at__isnull=True).in_bulk(ids)
    return [found[response_id] for response_id in ids if response_id in found]


def _facts(time: datetime) -> dict[str, Any]:
    return {"timestamp": time.timestamp(), "token_count": None, "finish_reason": None}


def _finish_reason(row: Response, last: Message) -> str:
    if row.incomplete_reason == IncompleteReason.MAX_OUTPUT_TOKENS:
        return "length"
    status = Status(row.status)
    if status in FINISH_REASONS:
        return FINISH_REASONS[status]
    return "tool_calls" if last["tool_calls"] else "stop"
