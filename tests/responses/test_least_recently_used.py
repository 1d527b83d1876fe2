"""Eviction by use: what was read or ended last stays, whatever was made last."""

from collections.abc import Callable
from datetime import datetime

from tests.support.server import (
    Server,
    eventually,
    script,
    streaming,
)
from tests.support.stored_rows import stored_rows


def time_of(server: Server, column: str, response_id: str) -> datetime:
    found = stored_rows(server, "response", column, id=response_id)[0][0]
    return found if isinstance(found, datetime) else datetime.fromisoformat(found)


def accessed_at(server: Server, response_id: str) -> datetime:
    return time_of(server, "accessed_at", response_id)


def finished_at(server: Server, response_id: str) -> datetime:
    return time_of(server, "finished_at", response_id)


def until_noted(server: Server, response_id: str, since: datetime) -> None:
    eventually(lambda: accessed_at(server, response_id) > since, what="the note of an access")


def test_what_is_used_outlives_what_is_not(make_server: Callable[..., Server]) -> None:
    server = make_server()
    client = server.openai()
    with streaming(server, input=script({"say": "long"}, {"gate": "end"})) as (_, received):
        next(received)
        ends_last = stored_rows(server, "response", "id")[0][0]
        polled, replayed = (client.responses.create(input=f"used {number}").id for number in range(2))
        unused = [client.responses.create(input=f"unused {number}").id for number in range(3)]
        for response_id in unused:  # whose POST has read the end, and nothing later
            assert accessed_at(server, response_id) == finished_at(server, response_id)
        newest = max(accessed_at(server, response_id) for response_id in unused)
        server.open_gate("end")
        list(received)
    server.body(polled)
    server.replay(replayed)
    for response_id in (polled, replayed, ends_last):
        until_noted(server, response_id, newest)
    server.manage("prune_responses", "--keep", "3")
    left = {row[0] for row in stored_rows(server, "response", "id")}
    assert left == {polled, replayed, ends_last}
