"""The columns of seeded rows, and what most rows have in them."""

from typing import Any

import orjson

from responses_app.management.seeding.templates import MODEL
from responses_app.models import Response
from responses_app.protocol.status import OnDisconnect

INPUT_COLUMNS = ("response_id", "position", "item")
WORD_COLUMNS = ("response_id", "words")
ITEM_COLUMNS = ("conversation_id", "position", "item_id", "response_id", "item")
TOOL_COLUMNS = (
    "response_id",
    "call_id",
    "name",
    "arguments",
    "output",
    "status",
    "attempt",
    "started_at",
    "finished_at",
    "approval_reason",
    "approver",
    "can_keep_consent",
    "decision",
    "decided_by",
)


def json_text(value: Any) -> str | None:
    """As both databases take it for a JSON column."""
    if value is None:
        return None
    return orjson.dumps(value).decode()


def _default_columns() -> dict[str, Any]:
    row = Response(
        id="",
        model=MODEL,
        requested_by="key seed",
        on_disconnect=str(OnDisconnect.CONTINUE),
        attempt=1,
        is_log_merged=True,
    )
    values: dict[str, Any] = {}
    for column in Response._meta.concrete_fields:
        value = getattr(row, column.attname)
        if column.get_internal_type() == "JSONField":
            value = json_text(value)
        elif isinstance(value, str):
            value = str(value)  # a choice becomes plain text, which every driver knows
        values[str(column.column)] = value
    return values


DEFAULTS = _default_columns()
RESPONSE_COLUMNS = tuple(DEFAULTS)
