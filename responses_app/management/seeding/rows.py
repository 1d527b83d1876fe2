"""The rows of planned sessions: copies of templates, inserted without a model object for each.

A model object per row would take longer than all the rest.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import Model

from responses_app.eventlog import Segment, merge
from responses_app.eventlog.inserting import COLUMNS, row_values
from responses_app.management.seeding.columns import (
    DEFAULTS,
    INPUT_COLUMNS,
    ITEM_COLUMNS,
    RESPONSE_COLUMNS,
    TOOL_COLUMNS,
    WORD_COLUMNS,
    json_text,
)
from responses_app.management.seeding.plan import PlannedSession, PlannedTurn
from responses_app.management.seeding.templates import (
    COMPLETED_AT,
    CREATED_AT,
    HEX_ID,
    Template,
)
from responses_app.models import (
    Conversation,
    ConversationItem,
    EventSegment,
    InputItem,
    Response,
    SearchEntry,
    Session,
    ToolEvent,
)
from responses_app.models.segments import Codec
from responses_app.protocol.ids import RESPONSE_PREFIX
from responses_app.protocol.status import Status
from responses_app.services.history.resent_history import chat_form, hash_after

MILLISECOND = timedelta(milliseconds=1)
NO_PREVIOUS = b'"previous_response_id":null'
NO_CONVERSATION = b'"conversation":null'


class Table:
    """Rows of one model, gathered and inserted together."""

    def __init__(self, model: type[Model], columns: Sequence[str]) -> None:
        self._rows: list[Sequence[Any]] = []
        marks = ", ".join(["%s"] * len(columns))
        table = model._meta.db_table
        self._sql = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"

    def add(self, *values: Any) -> None:
        self._rows.append(values)

    def insert(self) -> None:
        with connection.cursor() as cursor:
            cursor.executemany(self._sql, self._rows)
        self._rows.clear()


@dataclass
class _Chain:
    """What a turn takes over from the one before it."""

    previous_id: str | None = None
    root: str = ""
    depth: int = -1
    tokens: int = 0
    context_hash: str = ""
    chat_hash: str = ""


class Batch:
    """Rows of some sessions, for one transaction."""

    def __init__(self, owner_ids: list[int]) -> None:
        self.owner_ids = owner_ids
        self.responses = Table(Response, RESPONSE_COLUMNS)
        self.inputs = Table(InputItem, INPUT_COLUMNS)
        self.segments = Table(EventSegment, COLUMNS.split(", "))
        self.tools = Table(ToolEvent, TOOL_COLUMNS)
        self.items = Table(ConversationItem, ITEM_COLUMNS)
        self.words = Table(SearchEntry, WORD_COLUMNS)

    def store(self, planned: Sequence[PlannedSession]) -> int:
        """Insert the sessions with all that belongs to them; the number of responses."""
        sessions = Session.objects.bulk_create([self._session(one) for one in planned])
        stored = 0
        conversations: list[Conversation] = []
        for one, session in zip(planned, sessions, strict=True):
            conversation_id = None
            if one.is_conversation:
                conversation_id = f"conv_{one.turns[0].hex_id}"
                conversations.append(self._conversation(conversation_id, one, session))
            self._add_turns(one, session, conversation_id)
            stored += len(one.turns)
        Conversation.objects.bulk_create(conversations)
        tables = (self.responses, self.inputs, self.segments, self.tools, self.items, self.words)
        for table in tables:
            table.insert()
        return stored

    def _session(self, one: PlannedSession) -> Session:
        last = one.turns[-1]
        usages = [turn.template.usage for turn in one.turns if turn.template.usage]
        return Session(
            public_id=one.public_id,
            owner_id=self.owner_ids[one.owner],
            source=one.turn_kind,
            turn_count=len(one.turns),
            has_server_history=one.has_server_history,
            input_tokens=sum(usage["input_tokens"] for usage in usages),
            output_tokens=sum(usage["output_tokens"] for usage in usages),
            created_at=one.turns[0].created_at,
            last_active_at=last.created_at + last.template.total,
        )

    def _conversation(
        self, conversation_id: str, one: PlannedSession, session: Session
    ) -> Conversation:
        return Conversation(
            id=conversation_id,
            owner_id=session.owner_id,
            session=session,
            context_tokens=sum(turn.template.tokens for turn in one.turns),
            created_at=session.created_at,
        )

    def _add_turns(
        self, one: PlannedSession, session: Session, conversation_id: str | None
    ) -> None:
        chain = _Chain()
        position = 0
        for number, turn in enumerate(one.turns, 1):
            response_id = RESPONSE_PREFIX + turn.hex_id
            _extend(chain, response_id, turn.template)
            columns = _response_values(response_id, turn, chain)
            columns |= {
                "owner_id": session.owner_id,
                "session_id": session.pk,
                "turn": number,
                "kind": one.turn_kind,
                "conversation_id": conversation_id,
                "is_history_resent": not one.has_server_history and number > 1,
                "waits_for_turn": one.has_server_history,
            }
            if conversation_id is not None:
                columns["context_hash"] = columns["chat_context_hash"] = ""
            self.responses.add(*[columns[name] for name in RESPONSE_COLUMNS])
            if turn.is_stored:
                self._add_content(response_id, turn, chain.previous_id, conversation_id)
                if conversation_id is not None:
                    position = self._add_items(conversation_id, response_id, turn, position)
            chain.previous_id = response_id

    def _add_content(
        self,
        response_id: str,
        turn: PlannedTurn,
        previous_id: str | None,
        conversation_id: str | None,
    ) -> None:
        template = turn.template
        self.inputs.add(response_id, 0, template.input_json.replace(HEX_ID, turn.hex_id))
        self.words.add(response_id, template.words)
        segment = _segment(response_id, turn, _frames(turn, previous_id, conversation_id))
        for merged, packed in merge([segment]):
            self.segments.add(*row_values(merged, Codec.ZLIB, packed))
        for call in template.calls:
            started_at = turn.created_at + call.started_ms * MILLISECOND
            call_id = call.call_id.replace(HEX_ID, turn.hex_id)
            ended_at = _database_time(started_at + 30 * MILLISECOND)
            self.tools.add(
                *(response_id, call_id, call.name, call.arguments, call.output, "completed", 1),
                *(_database_time(started_at), ended_at, "", "operator", True, "", ""),
            )

    def _add_items(
        self, conversation_id: str, response_id: str, turn: PlannedTurn, position: int
    ) -> int:
        for item in turn.template.items:
            own_id = item["id"].replace(HEX_ID, turn.hex_id)
            self.items.add(conversation_id, position, own_id, response_id, None)
            position += 1
        return position


def _extend(chain: _Chain, response_id: str, template: Template) -> None:
    """The running values of the chain, as the end of a turn computes them."""
    asked, output = template.items[0], template.items[1:]
    chain.root = chain.root or response_id
    chain.depth += 1
    chain.tokens += template.tokens
    chain.context_hash = hash_after(chain.context_hash, template.items)
    chain.chat_hash = hash_after(chain.chat_hash, [asked, *chat_form(output)])


def _response_values(response_id: str, turn: PlannedTurn, chain: _Chain) -> dict[str, Any]:
    template = turn.template
    ended_at = _database_time(turn.created_at + template.total)
    usage = template.usage or {"input_tokens": 0, "output_tokens": 0}
    values = {
        **DEFAULTS,
        "id": response_id,
        "previous_id": chain.previous_id,
        "status": str(template.status),
        "usage": json_text(template.usage),
        "error": json_text(template.error),
        "error_code": template.error and template.error["code"],
        "incomplete_reason": template.incomplete_reason,
        "chain_root": chain.root,
        "chain_depth": chain.depth,
        "context_tokens": chain.tokens,
        "created_at": _database_time(turn.created_at),
        "started_at": _database_time(turn.created_at),
        "finished_at": ended_at,
        "accessed_at": ended_at,
        "first_output_ms": template.commits[1][1],
        "total_ms": template.total // MILLISECOND,
        "input_tokens": usage["input_tokens"],
        "output_tokens": usage["output_tokens"],
        "tool_calls": len(template.calls),
        "cancel_requested_at": ended_at if template.status is Status.CANCELLED else None,
    }
    if not turn.is_stored:
        return values | {"is_stored": False, "chain_root": response_id, "context_tokens": 0}
    return values | {
        "output": template.output_json.replace(HEX_ID, turn.hex_id),
        "message_count": template.messages,
        "context_hash": chain.context_hash,
        "chat_context_hash": chain.chat_hash,
        "last_position": template.last_position,
        "last_sequence": template.last_sequence,
    }


def _frames(turn: PlannedTurn, previous_id: str | None, conversation_id: str | None) -> bytes:
    created_at = int(turn.created_at.timestamp())
    completed_at = int((turn.created_at + turn.template.total).timestamp())
    frames = turn.template.frames.replace(HEX_ID.encode(), turn.hex_id.encode())
    frames = frames.replace(b"%d" % CREATED_AT, b"%d" % created_at)
    frames = frames.replace(b"%d" % COMPLETED_AT, b"%d" % completed_at)
    if conversation_id is not None:
        named = b'"conversation":{"id":"%s"}' % conversation_id.encode()
        return frames.replace(NO_CONVERSATION, named)
    if previous_id is not None:
        named = b'"previous_response_id":"%s"' % previous_id.encode()
        return frames.replace(NO_PREVIOUS, named)
    return frames


def _segment(response_id: str, turn: PlannedTurn, frames: bytes) -> Segment:
    template = turn.template
    created_ms = int(turn.created_at.timestamp() * 1000)
    marks = [f"{position}:{created_ms + at_ms}" for position, at_ms in template.commits]
    return Segment(
        response_id=response_id,
        attempt=1,
        first_position=0,
        last_position=template.last_position,
        first_sequence=0,
        next_sequence=template.last_sequence + 1,
        pieces=(frames,),
        is_final=True,
        commit_marks=",".join(marks),
    )


def _database_time(moment: datetime) -> Any:
    return connection.ops.adapt_datetimefield_value(moment.astimezone(UTC))
