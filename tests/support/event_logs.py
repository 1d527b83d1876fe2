"""Logs made by hand, as a model that is stored word by word leaves them."""

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import orjson
from django.contrib.auth import get_user_model
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from responses_app.database import READ_THREADS
from responses_app.eventlog import Numbering, Segment
from responses_app.eventlog.inserting import insert_fenced
from responses_app.eventlog.store import EventStore
from responses_app.models import Response, Session
from responses_app.protocol.events import COMPLETED, CREATED, Event
from responses_app.protocol.response_object import ResponseBody, initial_body
from responses_app.protocol.status import OnDisconnect, Status

MESSAGE: Event = {
    "type": "response.output_item.added",
    "output_index": 0,
    "item": {"id": "msg_0", "type": "message", "role": "assistant", "status": "in_progress", "content": []},
}
PART: Event = {
    "type": "response.content_part.added",
    "item_id": "msg_0",
    "output_index": 0,
    "content_index": 0,
    "part": {"type": "output_text", "text": "", "annotations": [], "logprobs": []},
}


def make_response(**fields: Any) -> Response:
    owner, _ = get_user_model().objects.get_or_create(username="owner")
    session = Session.objects.opened(owner.pk, None, "responses")
    settled: dict[str, Any] = {"status": Status.IN_PROGRESS, "on_disconnect": OnDisconnect.CONTINUE, "model": "m"}
    turn = Session.objects.next_turn(session.pk)
    return Response.objects.create(owner=owner, session=session, turn=turn, **{**settled, **fields})


def body_of(response_id: str) -> ResponseBody:
    return initial_body(response_id, model="m", created_at=1, status=Status.IN_PROGRESS, echo={})


def word(text: str) -> Event:
    return {
        "type": "response.output_text.delta",
        "item_id": "msg_0",
        "output_index": 0,
        "content_index": 0,
        "delta": text,
        "logprobs": [],
    }


def opening(numbering: Numbering) -> Segment:
    return numbering.seal([{"type": CREATED, "response": body_of(numbering.response_id)}, MESSAGE, PART])


def ending(numbering: Numbering) -> Segment:
    body = body_of(numbering.response_id)
    body["status"] = "completed"
    return numbering.seal([{"type": COMPLETED, "response": body}])


def store_log(words: int, **fields: Any) -> tuple[Response, Numbering]:
    """One segment per word, behind the events that open the message."""
    row = make_response(**fields)
    numbering = Numbering(row.pk, row.attempt)
    segments = [opening(numbering)]
    segments += [numbering.seal([word(f"w{number} ")]) for number in range(words)]
    store(segments)
    return row, numbering


def store(segments: Iterable[Segment]) -> None:
    with transaction.atomic():
        insert_fenced(list(segments))
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE responses_app_eventsegment")


@contextmanager
def counted_rows() -> Iterator[list[int]]:
    """What the SELECTs inside cost: steps of SQLite's machine, or rows that PostgreSQL looks at."""
    cost: list[int] = []
    if connection.vendor == "sqlite":
        with _sqlite_steps(cost):
            yield cost
        return
    with CaptureQueriesContext(connection) as captured:
        yield cost
    selects = [query["sql"] for query in captured.captured_queries if query["sql"].startswith("SELECT")]
    cost.append(sum(_postgres_rows(sql) for sql in selects))


@contextmanager
def _sqlite_steps(cost: list[int]) -> Iterator[None]:
    steps = 0

    def step() -> int:
        nonlocal steps
        steps += 1
        return 0

    connection.ensure_connection()
    connection.connection.set_progress_handler(step, 1)
    try:
        yield
    finally:
        connection.connection.set_progress_handler(None, 1)
        cost.append(steps)


def _postgres_rows(sql: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}")
        plan = cursor.fetchone()[0]
    if isinstance(plan, str):
        plan = orjson.loads(plan)
    return _rows_of(plan[0]["Plan"])


def _rows_of(node: dict[str, Any]) -> int:
    looked_at: float = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
    loops: int = node["Actual Loops"]
    return round(looked_at * loops) + sum(_rows_of(inner) for inner in node.get("Plans", ()))


def explained(sql: str) -> str:
    with connection.cursor() as cursor:
        how = "EXPLAIN QUERY PLAN" if connection.vendor == "sqlite" else "EXPLAIN"
        cursor.execute(f"{how} {sql}")
        return "\n".join(str(row[-1]) for row in cursor.fetchall())


class Statements:
    """What the reader threads of a store send to the database."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def __call__(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        self.seen.append(sql)
        return execute(sql, params, many, context)

    def reading(self, table: str) -> int:
        return sum(sql.startswith("SELECT") and table in sql for sql in self.seen)


async def watch_statements(store: EventStore) -> Statements:
    statements = Statements()
    await wrap_reads(store, statements)
    return statements


async def wrap_reads(store: EventStore, wrapper: Callable[..., Any]) -> None:
    """Around every statement of the threads that read."""
    all_there = threading.Barrier(READ_THREADS)

    def install() -> None:
        all_there.wait(10)
        connection.execute_wrappers.append(wrapper)

    await asyncio.gather(*(store.database.read(install) for _ in range(READ_THREADS)))
