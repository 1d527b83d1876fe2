"""Export: an archive as JSON Lines, or the responses as a CSV table."""

import csv
import io
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import orjson

from responses_app.models import Response
from responses_app.protocol.items import Item, item_text
from responses_app.services.archive.records import (
    Selection,
    conversations,
    ended_responses,
    response_records,
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
    """Keeps some records at a time in memory."""
    for rows in ended_responses(selection.rows()):
        for record in response_records(rows):
            yield orjson.dumps(record) + b"\n"
    for record in conversations(selection):
        yield orjson.dumps(record) + b"\n"


def csv_lines(selection: Selection) -> Iterator[bytes]:
    yield _line(list(TABLE + TABLE_OF_CONTENT))
    for rows in ended_responses(selection.rows()):
        for row in rows:
            yield _line(_cells(row))


def _cells(row: Response) -> list[Any]:
    cells: list[Any] = []
    for name in TABLE:
        if name == "session":
            cells.append(row.session.public_id)
        else:
            cells.append(getattr(row, name))
    usage = row.usage or {}
    error = row.error or {}
    cells.append(usage.get("input_tokens"))
    cells.append(usage.get("output_tokens"))
    cells.append(row.incomplete_reason)
    cells.append(error.get("message"))
    cells.append(_text(row.output or []))
    return cells


def _text(output: list[Item]) -> str:
    messages = [item for item in output if item["type"] == "message"]
    return "".join(item_text(item) for item in messages)


def _line(cells: list[Any]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerow([_safe_text(cell) for cell in cells])
    return text.getvalue().encode()


def _safe_text(cell: Any) -> str:
    if cell is None:
        return ""
    text = str(cell)
    if isinstance(cell, datetime):
        text = cell.isoformat()
    if text.startswith(FORMULA_STARTS):
        return f"'{text}"
    return text
