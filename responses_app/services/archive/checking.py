"""Checks a response of an archive before any transaction begins: do its parts fit together?"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ParamSpec, TypeVar

from django.core.exceptions import ValidationError
from django.db.models import Model

from responses_app.eventlog import Numbering, Segment, merge, up_to_end
from responses_app.models import Response, ToolEvent
from responses_app.protocol.events import Event, is_internal
from responses_app.protocol.item_states import states_in
from responses_app.protocol.snapshot import fold
from responses_app.protocol.status import TERMINAL
from responses_app.services.archive.records import (
    ARCHIVE_NAMES,
    RESPONSE_LEFT_OUT,
    TOOL_LEFT_OUT,
    Record,
)

_ID = re.compile(r"[A-Za-z0-9_-]+")
SEALED_EVENTS = 200  # merging joins whole segments: small ones keep the merged ones bounded

T = TypeVar("T", bound=Model)
P = ParamSpec("P")
R = TypeVar("R")


class BadRecord(Exception):
    """This record can't be restored; the message has the reason and the remedy."""


@dataclass(frozen=True)
class CheckedResponse:
    """Ready to be stored."""

    row: Response
    merged: list[tuple[Segment, bytes]]
    tools: list[ToolEvent]


def explained(step: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """A step whose failures at a field become reasons why the record is refused."""
    try:
        return step(*args, **kwargs)
    except (KeyError, TypeError, ValueError, AttributeError, ValidationError) as error:
        raise BadRecord(f"a field is missing or has a wrong value: {error!r}") from error


def check_response(record: Record) -> CheckedResponse:
    row = build_row(Response, record["response"], RESPONSE_LEFT_OUT)
    if not _ID.fullmatch(row.pk):
        raise BadRecord("its id is none that a server gives: no address could lead to it.")
    if row.status not in TERMINAL or row.finished_at is None:
        raise BadRecord("its response has not ended. Export it again when it has.")
    segments = _check_events(row, record)
    if segments:
        end = up_to_end(segments)[-1]
        row.last_position = end.last_position
        row.last_sequence = end.next_sequence - 1
        row.provider_state = states_in(record["events"])
    row.is_log_merged = not segments
    tools = [build_row(ToolEvent, columns, TOOL_LEFT_OUT) for columns in record["tool_events"]]
    return CheckedResponse(row, merge(segments), tools)


def _check_events(row: Response, record: Record) -> list[Segment]:
    """The log as it was committed; its events have to give the output of the row."""
    events: list[Event] = record["events"]
    if not row.is_stored or row.deleted_at is not None:
        if events:
            raise BadRecord("its content was deleted or never stored, and yet it has events.")
        return []
    numbers = [event["sequence_number"] for event in events if not is_internal(event)]
    if numbers != list(range(len(numbers))):
        raise BadRecord(
            "its events are not numbered 0, 1, 2, ...: the file was changed or is damaged."
        )
    body = fold(events)
    result = (body.get("id"), body.get("status"), body["output"])
    details = (body.get("usage"), body.get("error"))
    if result != (row.pk, row.status, row.output) or details != (row.usage, row.error):
        raise BadRecord(
            "its events do not add up to its output: the file was changed or is damaged."
        )
    return _committed(row, events, record["commits"])


def _committed(row: Response, events: list[Event], commits: list[list[int]]) -> list[Segment]:
    numbering = Numbering(row.pk, row.attempt)
    segments: list[Segment] = []
    marks: list[str] = []
    covered = 0
    for last, at_ms in commits:
        if min(last + 1, len(events)) <= covered:
            continue
        covered = min(last + 1, len(events))
        marks.append(f"{last}:{at_ms}")
        if covered == len(events) or covered - numbering.next_position >= SEALED_EVENTS:
            sealed = numbering.seal(events[numbering.next_position : covered])
            segments.append(replace(sealed, commit_marks=",".join(marks)))
            marks.clear()
    if covered != len(events):
        raise BadRecord(
            "its commit times do not cover its events: the file was changed or is damaged."
        )
    return segments


def build_row(model: type[T], columns: Record, left_out: set[str]) -> T:
    """A row from its columns, each converted by its field."""
    fields = {}
    for field in model._meta.concrete_fields:
        fields[ARCHIVE_NAMES.get(field.name, field.name)] = field
    unknown = columns.keys() - fields.keys() - left_out
    if unknown:
        raise ValueError(f"unknown columns {', '.join(sorted(unknown))}")
    values: dict[str, Any] = {}
    for name, value in columns.items():
        if name not in left_out:
            values[fields[name].attname] = fields[name].to_python(value)
    return model(**values)
