"""Whole turns, made once with the builder that real turns use, and copied under other ids.

A template's events fold to its output, so every copy's do: a copy only replaces ids and times.
"""

import random
from dataclasses import dataclass, field
from datetime import timedelta

import orjson

from responses_app.eventlog import Numbering
from responses_app.management.seeding import prose
from responses_app.protocol import events
from responses_app.protocol.builder import OutputBuilder
from responses_app.protocol.events import Event
from responses_app.protocol.ids import RESPONSE_PREFIX, item_id
from responses_app.protocol.items import Item
from responses_app.protocol.response_object import UsageBody, initial_body
from responses_app.protocol.status import IncompleteReason, Status
from responses_app.protocol.token_estimate import estimate_tokens
from responses_app.services.history.transcript import count_messages
from responses_app.services.search.words import words_of

# What copies replace; no text of a template contains them.
HEX_ID = "5eed" * 8
CREATED_AT = 1_111_111_111
COMPLETED_AT = 1_222_222_222
MODEL = "hermes-agent"
TOKEN_MS = 20
FIRST_TOKEN_MS = 400
TOOLS = (("read_file", '{"path": "notes.md"}'), ("calculate", '{"expression": "2 * 21"}'))


@dataclass(frozen=True)
class Call:
    call_id: str
    name: str
    arguments: str
    output: str
    started_ms: int


@dataclass(frozen=True)
class Template:
    status: Status
    frames: bytes
    output_json: str
    items: list[Item]  # the input and the output, for the hash of the conversation
    input_json: str
    usage: UsageBody | None
    error: dict[str, str] | None
    incomplete_reason: str
    last_position: int
    last_sequence: int
    commits: list[tuple[int, int]]  # the last position of each commit, and its milliseconds
    total: timedelta
    tokens: int
    messages: int
    calls: list[Call]
    words: str  # for the search index


@dataclass
class _Draft:
    """A turn under construction: its log, and the time that has passed in it."""

    builder: OutputBuilder
    numbering: Numbering
    at_ms: int = 0
    frames: list[bytes] = field(default_factory=list)
    commits: list[tuple[int, int]] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)

    def commit(self, later_ms: int) -> None:
        self.at_ms += later_ms
        segment = self.numbering.seal(self.builder.take())
        self.frames.append(segment.data)
        self.commits.append((segment.last_position, self.at_ms))


def make_templates(source: random.Random, count: int) -> list[Template]:
    """As many completed turns as other ones would be too many: most turns go well."""
    return [_template(source, _status(source)) for _ in range(count)]


def _status(source: random.Random) -> Status:
    kinds = (Status.COMPLETED, Status.INCOMPLETE, Status.FAILED, Status.CANCELLED)
    return source.choices(kinds, (92, 4, 2, 2))[0]


def _template(source: random.Random, status: Status) -> Template:
    response_id = RESPONSE_PREFIX + HEX_ID
    body = initial_body(
        response_id, model=MODEL, created_at=CREATED_AT, status=Status.IN_PROGRESS, echo={}
    )
    opening: list[Event] = [
        {"type": events.CREATED, "response": body},
        {"type": events.IN_PROGRESS, "response": body},
    ]
    draft = _Draft(OutputBuilder(response_id, ()), Numbering(response_id, 1))
    for event in opening:
        draft.builder.add(event)
    draft.commit(0)
    draft.builder.add({"type": events.MODEL_STARTED, "input_tokens": 40})
    if source.random() < 0.15:
        draft.builder.reasoning("".join(prose.tokens(source, 12)))
    for number in range(source.choices((0, 1, 2, 3), (75, 15, 7, 3))[0]):
        _add_call(draft, number, source)
    text = prose.tokens(source, int(source.triangular(8, 120, 20)))
    for number, token in enumerate(text):
        draft.builder.text(token)
        draft.commit(TOKEN_MS if number else FIRST_TOKEN_MS)
    usage = _usage(40, len(text) + 20 * len(draft.calls))
    return _finished(draft, status, usage, prose.question(source))


def _add_call(draft: _Draft, number: int, source: random.Random) -> None:
    name, arguments = source.choice(TOOLS)
    call_id = f"call_{HEX_ID}{number}"
    output = "".join(prose.tokens(source, 10))
    builder = draft.builder
    builder.call_started(call_id, name)
    builder.call_arguments(call_id, arguments)
    builder.call_finished(call_id)
    index = builder.output_index_of(call_id)
    called: Event = {"type": events.TOOL_CALLED, "call_id": call_id, "name": name}
    builder.add({**called, "output_index": index})
    draft.commit(FIRST_TOKEN_MS)
    draft.calls.append(Call(call_id, name, arguments, output, draft.at_ms))
    builder.add({**called, "type": events.TOOL_STARTED})
    finished: Event = {"type": events.TOOL_FINISHED, "status": "completed", "duration_ms": 30}
    builder.add({**called, **finished})
    builder.tool_output(call_id, output)
    draft.commit(30)


def _usage(input_tokens: int, output_tokens: int) -> UsageBody:
    return {
        "input_tokens": input_tokens,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": input_tokens + output_tokens,
    }


def _finished(draft: _Draft, status: Status, usage: UsageBody, question: str) -> Template:
    error = None
    incomplete = None
    reported: UsageBody | None = usage
    if status is Status.FAILED:
        error = {"code": "server_error", "message": "The model's server closed the connection."}
        reported = None
    if status is Status.INCOMPLETE:
        incomplete = {"reason": str(IncompleteReason.MAX_OUTPUT_TOKENS)}
    draft.builder.finish(status, usage=reported, error=error, incomplete=incomplete)
    if status is Status.COMPLETED:
        draft.builder.pending[-1]["response"]["completed_at"] = COMPLETED_AT
    draft.commit(TOKEN_MS)
    asked: Item = {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": question}],
        "id": item_id(RESPONSE_PREFIX + HEX_ID, "message", 0, is_input=True),
    }
    output = draft.builder.output
    return Template(
        status=status,
        frames=b"".join(draft.frames),
        output_json=orjson.dumps(output).decode(),
        items=[asked, *output],
        input_json=orjson.dumps(asked).decode(),
        usage=reported,
        error=error,
        incomplete_reason=(incomplete or {}).get("reason", ""),
        last_position=draft.numbering.next_position - 1,
        last_sequence=draft.numbering.next_sequence - 1,
        commits=draft.commits,
        total=timedelta(milliseconds=draft.at_ms),
        tokens=estimate_tokens([asked, *output], None, []),
        messages=count_messages([asked]) + count_messages(output),
        calls=draft.calls,
        words=words_of([asked, *output]),
    )
