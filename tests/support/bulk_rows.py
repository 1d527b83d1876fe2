"""Many rows at once: copies of one row, made by the database itself."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django.contrib.auth import get_user_model
from django.db import connection
from django.db.models import Model
from django.utils import timezone

from responses_app.models import Response, Session
from responses_app.protocol.items import Item
from responses_app.protocol.status import OPEN, OnDisconnect, Status
from responses_app.services.conversations import ConversationHistory


def make_row(session: Session | None = None, *, at: datetime | None = None, **fields: Any) -> Response:
    """One response; it has ended unless its status is an open one."""
    owner, _ = get_user_model().objects.get_or_create(username="owner")
    session = session or Session.objects.opened(owner.pk, None, "responses")
    at = at or timezone.now()
    known: dict[str, Any] = {"status": Status.COMPLETED, "model": "m", "on_disconnect": OnDisconnect.CONTINUE}
    known |= {"created_at": at, "accessed_at": at, **fields}
    if known["status"] not in OPEN:
        known.setdefault("finished_at", at)
        known.setdefault("is_log_merged", True)
    turn = Session.objects.next_turn(session.pk)
    return Response.objects.create(owner=session.owner, session=session, turn=turn, **known)


def copy_row(row: Model, count: int, changed: Mapping[str, str]) -> None:
    """Copies number 1 to ``count``; ``changed`` gives SQL for columns, with ``{n}`` for the number."""
    columns = [str(field.column) for field in row._meta.concrete_fields]
    if "id" not in changed:
        columns.remove("id")
    values = [changed.get(column, f"r.{column}").replace("{n}", "s.n") for column in columns]
    table = row._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute(
            f"WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < %s) "
            f"INSERT INTO {table} ({_listed(columns)}) SELECT {_listed(values)} FROM {table} r, s WHERE r.id = %s",
            [count, row.pk],
        )


def copy_response(row: Response, count: int, *, is_chain: bool = False, step_secs: int = 1) -> None:
    """Later turns of its session, one every ``step_secs``; in a chain, each continues the one before it."""
    name = f"{row.pk[:24]}_"
    changed = {
        "id": f"'{name}' || {{n}}",
        "turn": f"{row.turn} + {{n}}",
        "created_at": later("r.created_at", step_secs),
        "accessed_at": later("r.accessed_at", step_secs),
        "finished_at": later("r.finished_at", step_secs),
    }
    if is_chain:
        changed["previous_id"] = f"CASE WHEN {{n}} = 1 THEN r.id ELSE '{name}' || ({{n}} - 1) END"
    copy_row(row, count, changed)
    Session.objects.filter(pk=row.session_id).update(turn_count=row.turn + count)


def later(column: str, step_secs: int) -> str:
    if connection.vendor == "postgresql":
        return f"{column} + {{n}} * {step_secs} * interval '1 second'"
    return f"strftime('%Y-%m-%d %H:%M:%f000', {column}, '+' || ({{n}} * {step_secs}) || ' seconds')".replace("%", "%%")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


def give_content(text: str = "words " * 200) -> None:
    """An input item, a segment and an idempotency key for each response that has none."""
    responses, frames = Response._meta.db_table, text.encode()
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO responses_app_inputitem (response_id, position, item) "
            f"SELECT id, 0, '{{}}' FROM {responses} WHERE id NOT IN (SELECT response_id FROM responses_app_inputitem)"
        )
        cursor.execute(
            "INSERT INTO responses_app_eventsegment (response_id, attempt, first_position, last_position, "
            "first_sequence, next_sequence, is_final, format_version, codec, commit_marks, frames) "
            f"SELECT id, 0, 0, 0, 0, 1, %s, 1, 0, '', %s FROM {responses} "
            "WHERE id NOT IN (SELECT response_id FROM responses_app_eventsegment)",
            [True, frames],
        )
        cursor.execute(
            "INSERT INTO responses_app_idempotencykey (owner_id, digest, response_id, created_at, expires_at) "
            f"SELECT owner_id, 'd', id, created_at, created_at FROM {responses} "
            "WHERE id NOT IN (SELECT response_id FROM responses_app_idempotencykey)"
        )


def read_items(conversation_id: str) -> list[Item]:
    """All items of a conversation in their order."""
    pages = list(ConversationHistory(conversation_id).back())
    return [item for page in reversed(pages) for item in page]
