"""A batch of an import: what its records refer to is read at once, and all rows are stored."""

from typing import Any

from django.contrib.auth.models import User
from django.db import connection

from responses_app.eventlog.inserting import COLUMNS, ROW, row_values
from responses_app.models import (
    ApiKey,
    Conversation,
    EventSegment,
    InputItem,
    Kind,
    Response,
    SearchEntry,
    Session,
    ToolEvent,
)
from responses_app.models.responses import MAX_ERROR_CODE_CHARS
from responses_app.models.segments import Codec
from responses_app.services.archive.checking import BadRecord, CheckedResponse, build_row
from responses_app.services.archive.records import SESSION_LEFT_OUT, Record
from responses_app.services.history.chain_values import position_in_chain
from responses_app.services.keys import KEY_ACTOR
from responses_app.services.search.words import words_of

IMPORTED = " (imported)"  # after the name of a key that is not here
MAX_ACTOR_CHARS = 200


class Batch:
    """In the transaction of the caller. An error of ``add`` leaves the batch as it was."""

    def __init__(self, rehearsed: set[str]) -> None:
        self._rehearsed = rehearsed
        self._earlier: dict[str, Response] = {}  # what its responses continue
        self._turns: dict[tuple[int, int], str] = {}  # of the sessions that are here
        self._sessions: dict[tuple[int, str], Session] = {}
        self._keys: dict[int, dict[str, int]] = {}  # of each owner: names and numbers
        self._responses: list[Response] = []
        self._inputs: list[InputItem] = []
        self._tools: list[ToolEvent] = []
        self._words: list[SearchEntry] = []
        self._segments: list[tuple[Any, ...]] = []

    @property
    def ids(self) -> list[str]:
        return [row.pk for row in self._responses]

    def read(self, records: list[Record]) -> None:
        earlier = [record["previous"] for record in records if record.get("previous")]
        self._earlier = Response.objects.in_bulk(earlier)
        names = {str(record["session"]["public_id"]) for record in records}
        for session in Session.objects.filter(public_id__in=names):
            self._sessions[session.owner_id, session.public_id] = session
        turns = Response.objects.filter(session__in=self._sessions.values())
        for session_id, turn, pk in turns.values_list("session_id", "turn", "pk"):
            self._turns[session_id, turn] = pk

    def add(self, checked: CheckedResponse, record: Record, owner: User) -> None:
        row = checked.row
        row.owner = owner
        row.session = self._session(record["session"], owner)
        taken = self._turns.get((row.session.pk, row.turn))
        if taken is not None:
            raise BadRecord(
                f"turn {row.turn} of its session {row.session.public_id} is {taken} here."
            )
        if record["conversation"] is not None:
            row.conversation = open_conversation(record["conversation"], row.session, owner)
        self._join_chain(row, record["previous"])
        self._attribute(checked, record.get("keys") or {}, owner)
        row.retry_of = record.get("retry_of")
        if row.error:
            row.error_code = str(row.error["code"])[:MAX_ERROR_CODE_CHARS]
        items = list(record["input_items"])
        self._note(checked, items)

    def _note(self, checked: CheckedResponse, items: list[Any]) -> None:
        row = checked.row
        self._turns[row.session.pk, row.turn] = row.pk
        self._sessions[row.owner_id, row.session.public_id] = row.session
        self._earlier[row.pk] = row
        row.is_log_merged = True
        self._responses.append(row)
        for position, item in enumerate(items):
            self._inputs.append(InputItem(response_id=row.pk, position=position, item=item))
        for tool in checked.tools:
            tool.response_id = row.pk
            self._tools.append(tool)
        for segment, packed in checked.merged:
            self._segments.append(row_values(segment, Codec.ZLIB, packed))
        words = words_of([*items, *(row.output or [])])
        if words and row.is_stored and row.deleted_at is None:
            self._words.append(SearchEntry(response_id=row.pk, words=words))

    def store(self) -> None:
        Response.objects.bulk_create(self._responses)
        InputItem.objects.bulk_create(self._inputs)
        ToolEvent.objects.bulk_create(self._tools)
        SearchEntry.objects.bulk_create(self._words)
        statement = f"INSERT INTO {EventSegment._meta.db_table} ({COLUMNS}) VALUES {ROW}"
        with connection.cursor() as cursor:
            cursor.executemany(statement, self._segments)
        self._note_turns()

    def _note_turns(self) -> None:
        last: dict[int, int] = {}
        waiting: set[int] = set()
        for row in self._responses:
            last[row.session_id] = max(row.turn, last.get(row.session_id, 0))
            if row.waits_for_turn:
                waiting.add(row.session_id)
        for session_id, turn in last.items():
            session = Session.objects.filter(pk=session_id, turn_count__lt=turn)
            session.update(turn_count=turn)
        Session.objects.filter(pk__in=waiting).update(has_server_history=True)

    # -- one response -------------------------------------------------------------------
    def _session(self, columns: Record, owner: User) -> Session:
        known = self._sessions.get((owner.pk, columns["public_id"]))
        return known or _add_session(columns, owner)

    def _join_chain(self, row: Response, previous_id: str | None) -> None:
        """Its context is counted when a turn that continues it needs the count."""
        if previous_id is not None:
            found = self._earlier.get(previous_id)
            if found is not None and found.owner_id == row.owner_id:
                row.previous = found
            elif previous_id not in self._rehearsed:
                raise BadRecord(
                    f"it continues {previous_id}, which is not here. Import that first."
                )
        if row.kind == Kind.COMPACTION or not row.is_stored:
            row.chain_root = row.pk
            return
        values = position_in_chain(
            row.pk,
            row.previous,
            has_instructions=row.request.get("instructions") is not None,
            brings_history=row.is_history_resent,
        )
        for name, value in values.items():
            setattr(row, name, value)

    def _attribute(self, checked: CheckedResponse, names: Record, owner: User) -> None:
        row = checked.row
        row.requested_by = self._actor(row.requested_by, names, owner)
        row.cancel_requested_by = self._actor(row.cancel_requested_by, names, owner)
        for tool in checked.tools:
            tool.decided_by = self._actor(tool.decided_by, names, owner)

    def _actor(self, actor: str, names: Record, owner: User) -> str:
        """The owner's key with the same name, else a text: a number names another key here."""
        if not actor.startswith(KEY_ACTOR) or actor.endswith(IMPORTED):
            return actor
        if owner.pk not in self._keys:
            keys = ApiKey.objects.filter(owner=owner).values_list("name", "pk")
            self._keys[owner.pk] = dict(keys)
        name = str(names.get(actor, actor)).removeprefix(KEY_ACTOR)
        here = self._keys[owner.pk].get(name)
        if actor in names and here is not None:
            return f"{KEY_ACTOR}{here}"
        return f"{KEY_ACTOR}{name}"[: MAX_ACTOR_CHARS - len(IMPORTED)] + IMPORTED


def open_session(columns: Record, owner: User) -> Session:
    session = Session.objects.filter(owner=owner, public_id=columns["public_id"]).first()
    return session or _add_session(columns, owner)


def _add_session(columns: Record, owner: User) -> Session:
    session = build_row(Session, columns, SESSION_LEFT_OUT)
    session.owner = owner
    if columns["parent"] is not None:
        parents = Session.objects.filter(owner=owner, public_id=columns["parent"])
        session.parent = parents.first()
    if columns["fork_point"] is not None:
        turns = Response.objects.filter(owner=owner, pk=columns["fork_point"])
        session.fork_point = turns.first()
    session.save(force_insert=True)
    return session


def open_conversation(columns: Record, session: Session, owner: User) -> Conversation:
    conversation = Conversation.objects.filter(pk=columns["id"]).first()
    if conversation is not None:
        if conversation.owner_id != owner.pk:
            raise BadRecord(f"{conversation.pk} belongs to another user here.")
        return conversation
    name = columns["name"]
    if name is not None and Conversation.objects.filter(owner=owner, name=name).exists():
        raise BadRecord(
            f"{owner} has another conversation named {name!r} here. Rename or delete it."
        )
    conversation = build_row(Conversation, columns, {"session", "owner"})
    conversation.owner = owner
    conversation.session = session
    conversation.save(force_insert=True)
    return conversation
