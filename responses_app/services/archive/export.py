"""Export: an archive as JSON Lines, or the responses as a table to look at."""

import csv
import io
from collections.abc import Iterator
from typing import Any

import orjson

from responses_app.models import Response
from responses_app.services.archive.records import (
    Selection,
    conversations,
    ended_responses,
    response_record,
)

TABLE = (
    "id",
    "owner",
    "session",
    "turn",
    "kind",
    "status",
    "model",
    "created_at",
    "finished_at",
    "attempt",
)
TABLE_OF_CONTENT = ("input_tokens", "output_tokens", "incomplete_reason", "error", "text")
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet would run


def json_lines(selection: Selection) -> Iterator[bytes]:
    """One record at a time is in memory."""
    for row in ended_responses(selection.rows()):
        yield orjson.dumps(response_record(row)) + b"\n"
    for record in conversations(selection):
        yield orjson.dumps(record) + b"\n"


def csv_lines(selection: Selection) -> Iterator[bytes]:
    yield _line([*TABLE, *TABLE_OF_CONTENT])
    for row in ended_responses(selection.rows()):
        yield _line(_cells(row))


def _cells(row: Response) -> list[Any]:
    usage, error = row.usage or {}, row.error or {}
    told = {**{name: getattr(row, name) for name in TABLE}, "session": row.session.public_id}
    texts = [
        part.get("text", "")
        for item in row.output or []
        if item["type"] == "message"
        for part in item["content"]
    ]
    content = [
        usage.get("input_tokens"),
        usage.get("output_tokens"),
        row.incomplete_reason,
        error.get("message"),
    ]
    return [*told.values(), *content, "".join(texts)]


def _line(cells: list[Any]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerow([_safe(cell) for cell in cells])
    return text.getvalue().encode()


def _safe(cell: Any) -> Any:
    told = "" if cell is None else cell.isoformat() if hasattr(cell, "isoformat") else str(cell)
    return f"'{told}" if told.startswith(FORMULA_STARTS) else told
