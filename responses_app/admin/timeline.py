"""A session as turns, each with what was asked, what was said and what was done: plain data for a template.

What clients, models and tools wrote is kept as text; the templates escape it.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from responses_app.eventlog import LogFormatNotSupported, current_body
from responses_app.models import Response, Session, ToolEvent
from responses_app.protocol.items import ARGUMENTS_OF, CALLS, OUTPUTS, Content, ContentPart, Item
from responses_app.services.history.chain import inputs_of
from responses_app.services.keys import actor_names

SHOWN_CHARS = (
    20_000  # a page of tool outputs must still open; the rest is in the API and in exports
)


@dataclass(frozen=True)
class Said:
    """A message, a thought, or an item of a kind that is shown as it is."""

    kind: str
    text: str
    status: str = ""


@dataclass
class Call:
    """A tool call with its result, from the items and from the ledger."""

    name: str
    call_id: str
    arguments: str = ""
    output: str | None = None
    status: str = ""
    event: ToolEvent | None = None

    @property
    def duration_secs(self) -> float | None:
        return None if self.event is None else _secs(self.event.started_at, self.event.finished_at)


@dataclass(frozen=True)
class Turn:
    row: Response
    input: list[Said | Call]
    output: list[Said | Call]
    children: list[Response] = field(default_factory=list)
    forks: list[Session] = field(default_factory=list)
    call_count: int = 0  # of the ledger
    asked_by: str = ""

    @property
    def waited_secs(self) -> float | None:
        return _secs(self.row.created_at, self.row.started_at)

    @property
    def worked_secs(self) -> float | None:
        return _secs(self.row.started_at, self.row.finished_at)

    @property
    def error_text(self) -> str:
        error = self.row.error or {}
        return f"{error.get('code', '')}: {error.get('message', '')}" if error else ""


def read_turns(rows: Sequence[Response]) -> list[Turn]:
    """All of them with a fixed number of queries, and one more for each that runs at the moment."""
    ids = [row.pk for row in rows]
    asked = inputs_of(ids)
    done, children, forks = (defaultdict[str | None, list[Any]](list) for _ in range(3))
    for event in ToolEvent.objects.filter(response_id__in=ids).order_by("pk"):
        done[event.response_id].append(event)
    for child in (
        Response.objects.filter(previous_id__in=ids)
        .only("pk", "previous_id", "status")
        .order_by("created_at")
    ):
        children[child.previous_id].append(child)
    for fork in Session.objects.filter(fork_point_id__in=ids).order_by("pk"):
        forks[fork.fork_point_id].append(fork)
    names = actor_names(row.requested_by for row in rows)
    return [
        Turn(
            row,
            _shown(asked[row.pk]),
            _shown(_output(row), done[row.pk]),
            children[row.pk],
            forks[row.pk],
            len(done[row.pk]),
            names.get(row.requested_by, row.requested_by),
        )
        for row in rows
    ]


def _output(row: Response) -> list[Item]:
    if (
        row.output is not None
        or not row.is_stored
        or row.started_at is None
        or row.deleted_at is not None
    ):
        return row.output or []
    try:
        body = current_body(row.pk)
    except LogFormatNotSupported:
        return []
    return [] if body is None else body["output"]


def _shown(items: Iterable[Item], ledger: Iterable[ToolEvent] = ()) -> list[Said | Call]:
    shown: list[Said | Call] = []
    events = {event.call_id: event for event in ledger}
    calls: dict[str, Call] = {}
    for item in items:
        kind, call_id = item["type"], item.get("call_id", "")
        if kind in OUTPUTS and call_id in calls:
            calls[call_id].output = _cut(_text(item["output"]))
        elif kind in (*CALLS, *OUTPUTS, "mcp_call"):
            call = _call(item, events.pop(call_id, None))
            calls[call.call_id] = call
            shown.append(call)
        else:
            shown.append(_said(item))
    # Calls that clients are not shown, and those of an output that was never stored.
    unseen = [event for event in events.values() if not _is_shown(event, calls.values())]
    return [*shown, *(_from_ledger(event) for event in unseen)]


def _is_shown(event: ToolEvent, calls: Iterable[Call]) -> bool:
    """An ``mcp_call`` item has no call id: its place in the ledger is found by name and arguments."""
    for call in calls:
        if (
            call.event is None
            and event.name.endswith(call.name)
            and call.arguments == pretty(event.arguments)
        ):
            call.event = event
            return True
    return False


def _call(item: Item, event: ToolEvent | None) -> Call:
    arguments = item.get(ARGUMENTS_OF.get(item["type"], "arguments"), "")
    output = item.get("output") or item.get("error")
    return Call(
        name=str(item.get("name", "result of a tool")),
        call_id=str(item.get("call_id") or item.get("id", "")),
        arguments=pretty(str(arguments)),
        output=None if output is None else _cut(_text(output)),
        status=str(item.get("status", "") if event is None else event.status),
        event=event,
    )


def _from_ledger(event: ToolEvent) -> Call:
    output = _cut(pretty(event.output)) if event.is_over else None
    return Call(event.name, event.call_id, pretty(event.arguments), output, event.status, event)


def _said(item: Item) -> Said:
    status = str(item.get("status", ""))
    if item["type"] == "message":
        return Said(str(item["role"]), _cut(_joined(item["content"])), status)
    if item["type"] == "reasoning":
        return Said("reasoning", _cut(_joined(item.get("summary", []))), status)
    return Said(str(item["type"]), pretty(json.dumps(item)), status)


def _text(content: Content | None) -> str:
    """What a tool gave back; JSON is indented."""
    return pretty(_joined(content))


def _joined(content: Content | None) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(_part(part) for part in content or ())


def _part(part: ContentPart) -> str:
    if "text" in part:
        return part["text"]
    if "refusal" in part:
        return part["refusal"]
    return f"[{part.get('type', 'part')}]"


def pretty(text: str) -> str:
    """JSON is indented, anything else stays as it is; either is cut where it is very long."""
    if text[:1] in ("{", "["):
        with suppress(ValueError, RecursionError):
            text = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    return _cut(text)


def pretty_json(value: Any) -> str:
    return _cut(json.dumps(value, indent=2, ensure_ascii=False))


def _cut(text: str) -> str:
    left = len(text) - SHOWN_CHARS
    return (
        text
        if left <= 0
        else f"{text[:SHOWN_CHARS]}\n… {left:,} more characters, which the API and exports have."
    )


def _secs(start: datetime | None, end: datetime | None) -> float | None:
    return None if start is None or end is None else (end - start).total_seconds()
