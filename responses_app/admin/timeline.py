"""A session as turns with their input, output and tool calls: plain data for a template.

What clients, models and tools wrote stays text; the templates escape it.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from responses_app.admin.bidirectional import escaped
from responses_app.eventlog import LogFormatNotSupported, current_body
from responses_app.models import Response, Session, ToolEvent
from responses_app.protocol.items import ARGUMENTS_OF, CALLS, OUTPUTS, Content, ContentPart, Item
from responses_app.services.history.branches import Parent, read_parents
from responses_app.services.history.chain import inputs_of
from responses_app.services.keys import actor_names
from responses_app.services.lifecycle.waiting import Wait, read_waits

MAX_INDENT = 4  # levels of branches that a page indents
SHOWN_CHARS = 20_000  # of one text: a page of tool outputs must still open
INDENTED_CHARS = 200_000  # of JSON: more takes seconds for a page of calls


@dataclass(frozen=True)
class Text:
    """A message, reasoning, or an item of another kind as JSON."""

    kind: str
    text: str
    status: str = ""
    more: str = ""  # how much of a very long text is not shown


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
        if self.event is None:
            return None
        return _secs(self.event.started_at, self.event.finished_at)


@dataclass(frozen=True)
class Turn:
    row: Response
    input: list[Text | Call]
    output: list[Text | Call]
    children: list[Response] = field(default_factory=list)
    forks: list[Session] = field(default_factory=list)
    call_count: int = 0  # tool events in the ledger
    asked_by: str = ""
    wait: Wait | None = None
    retries: list[Response] = field(default_factory=list)
    parent: Parent | None = None  # the turn that it continues
    indent: int = 0

    @property
    def waited_secs(self) -> float | None:
        return _secs(self.row.created_at, self.row.started_at)

    @property
    def worked_secs(self) -> float | None:
        return _secs(self.row.started_at, self.row.finished_at)

    @property
    def error_text(self) -> str:
        error = self.row.error
        if not error:
            return ""
        return f"{error.get('code', '')}: {error.get('message', '')}"


def read_turns(rows: Sequence[Response]) -> list[Turn]:
    """The turns of these rows, with a fixed number of queries and one more per running response."""
    ids = [row.pk for row in rows]
    inputs = inputs_of(ids)
    events = ToolEvent.objects.filter(response_id__in=ids).order_by("pk")
    children = Response.objects.filter(previous_id__in=ids).order_by("created_at")
    forks = Session.objects.filter(fork_point_id__in=ids).order_by("pk")
    events_of = _grouped(events, "response_id")
    children_of = _grouped(children.only("pk", "previous_id", "status"), "previous_id")
    forks_of = _grouped(forks, "fork_point_id")
    retries = Response.objects.filter(retry_of__in=ids).order_by("created_at")
    retries_of = _grouped(retries.only("pk", "retry_of", "status"), "retry_of")
    waits = read_waits(rows)
    names = actor_names(row.requested_by for row in rows)
    parents = read_parents(rows)
    indents = _indents(rows, parents)
    turns = []
    for row in rows:
        turn = Turn(
            row=row,
            input=_parts(inputs[row.pk]),
            output=_parts(_output(row), events_of[row.pk]),
            children=children_of[row.pk],
            forks=forks_of[row.pk],
            call_count=len(events_of[row.pk]),
            asked_by=names.get(row.requested_by, row.requested_by),
            wait=waits.get(row.pk),
            retries=retries_of[row.pk],
            parent=parents.get(row.pk),
            indent=indents[row.pk],
        )
        turns.append(turn)
    return turns


def _indents(rows: Iterable[Response], parents: dict[str, Parent]) -> dict[str, int]:
    """A branch is one step further right than its parent; the turns that continue it stay there."""
    indents: dict[str, int] = {}
    for row in rows:
        indent = indents.get(row.previous_id or "", 0)
        parent = parents.get(row.pk)
        if parent is not None and parent.is_branched:
            indent = min(indent + 1, MAX_INDENT)
        indents[row.pk] = indent
    return indents


def _grouped(rows: Iterable[Any], field: str) -> dict[str, list[Any]]:
    """The rows by the response that the field names."""
    groups: dict[str, list[Any]] = defaultdict(list)
    for row in rows:
        groups[getattr(row, field)].append(row)
    return groups


def _output(row: Response) -> list[Item]:
    stored: list[Item] | None = row.output
    if stored is not None:
        return stored
    if not row.is_stored or row.started_at is None or row.deleted_at is not None:
        return []
    try:
        body = current_body(row.pk)
    except LogFormatNotSupported:
        return []
    if body is None:
        return []
    output: list[Item] = body["output"]
    return output


def _parts(items: Iterable[Item], ledger: Iterable[ToolEvent] = ()) -> list[Text | Call]:
    parts: list[Text | Call] = []
    events = {event.call_id: event for event in ledger}
    calls: dict[str, Call] = {}
    for item in items:
        kind = item["type"]
        call_id = item.get("call_id", "")
        if kind in OUTPUTS and call_id in calls:
            calls[call_id].output = pretty(_joined(item["output"]))
        elif kind in CALLS or kind in OUTPUTS or kind == "mcp_call":
            call = _call(item, events.pop(call_id, None))
            calls[call.call_id] = call
            parts.append(call)
        else:
            parts.append(_text(item))
    without_event: dict[str, list[Call]] = defaultdict(list)  # by their arguments
    for call in calls.values():
        if call.event is None:
            without_event[call.arguments].append(call)
    # Calls that are in no item: hidden from clients, or their output was never stored.
    for event in events.values():
        if not _attach(event, without_event[pretty(event.arguments)]):
            parts.append(_from_ledger(event))
    return parts


def _attach(event: ToolEvent, calls: list[Call]) -> bool:
    """An ``mcp_call`` item has no call id: its event is found by name and arguments."""
    for position, call in enumerate(calls):
        if event.name.endswith(call.name):
            call.event = event
            call.status = event.status
            del calls[position]
            return True
    return False


def _call(item: Item, event: ToolEvent | None) -> Call:
    arguments = item.get(ARGUMENTS_OF.get(item["type"], "arguments"), "")
    call = Call(
        name=str(item.get("name", "result of a tool")),
        call_id=str(item.get("call_id") or item.get("id", "")),
        arguments=pretty(str(arguments)),
        status=str(item.get("status", "")),
        event=event,
    )
    output = item.get("output") or item.get("error")
    if output is not None:
        call.output = pretty(_joined(output))
    if event is not None:
        call.status = event.status
    return call


def _from_ledger(event: ToolEvent) -> Call:
    output = None
    if event.is_over:
        output = pretty(event.output)
    return Call(event.name, event.call_id, pretty(event.arguments), output, event.status, event)


def _text(item: Item) -> Text:
    status = str(item.get("status", ""))
    if item["type"] == "message":
        return _written(str(item["role"]), _joined(item["content"]), status)
    if item["type"] == "reasoning":
        parts = item.get("content") or item.get("summary")
        return _written("reasoning", _joined(parts), status)
    return Text(str(item["type"]), pretty(json.dumps(item)), status)


def _written(kind: str, text: str, status: str) -> Text:
    """Apart from the note: the page renders the text as Markdown."""
    shown, more = cut_text(text)
    return Text(kind, shown, status, more)


def _joined(content: Content | None) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(_part_text(part) for part in content or ())


def _part_text(part: ContentPart) -> str:
    if "text" in part:
        return part["text"]
    if "refusal" in part:
        return part["refusal"]
    return f"[{part.get('type', 'part')}]"


def pretty(text: str) -> str:
    """JSON is indented, other text keeps its lines; a very long text is cut."""
    if text[:1] in ("{", "[") and len(text) <= INDENTED_CHARS:
        with suppress(ValueError, RecursionError):
            text = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    return escaped(_cut(text))


def cut_text(text: str) -> tuple[str, str]:
    """What a page shows of a text, and a note about the rest."""
    return text[:SHOWN_CHARS], _more(text)


def pretty_json(value: Any) -> str:
    return _cut(json.dumps(value, indent=2, ensure_ascii=False))


def _cut(text: str) -> str:
    more = _more(text)
    if not more:
        return text
    return f"{text[:SHOWN_CHARS]}\n{more}"


def _more(text: str) -> str:
    left = len(text) - SHOWN_CHARS
    if left <= 0:
        return ""
    return f"… {left:,} more characters, which the API and exports have."


def _secs(start: datetime | None, end: datetime | None) -> float | None:
    if start is None or end is None:
        return None
    return (end - start).total_seconds()
