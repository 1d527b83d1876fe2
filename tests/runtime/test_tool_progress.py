"""A tool that prints while its turn is ended from outside: the log ends with the terminal event."""

from collections.abc import Callable

import pytest

from gateway_app.runtime.tool_progress import ToolProgress
from responses_app.protocol.events import Event
from tests.support.checker import check_log
from tests.support.server import Server, eventually, script
from tests.support.stored_rows import stored_rows

pytestmark = pytest.mark.any_database

OPENING_EVENTS = 4  # created, in progress, and the two of the call


def start_printing(server: Server, word: str) -> str:
    printing = script({"call": "printer", "arguments": {"text": word}})
    with server.http() as client:
        body = client.post("/v1/responses", json={"input": printing, "background": True}).json()
    response_id: str = body["id"]
    return response_id


def until_printed(server: Server, response_id: str) -> None:
    def has_printed() -> bool:
        first_positions = stored_rows(server, "eventsegment", "first_position", response_id=response_id)
        return any(first >= OPENING_EVENTS for (first,) in first_positions)

    eventually(has_printed, 20, "the output of the tool")


def until_traced(server: Server, word: str) -> None:
    path = server.home / "effects.txt"
    eventually(lambda: path.exists() and word in path.read_text(), 20, "the trace of the tool")


def check_end(server: Server, response_id: str) -> None:
    [(end,)] = stored_rows(server, "response", "last_position", id=response_id)
    last_positions = stored_rows(server, "eventsegment", "last_position", response_id=response_id)
    assert max(last for (last,) in last_positions) <= end
    assert server.replay(response_id)[-1] == b"data: [DONE]\n\n"
    check_log(server, response_id)


async def test_what_was_printed_before_the_end_is_kept_and_nothing_after_it() -> None:
    noted: list[Event] = []
    progress = ToolProgress("call_1", noted.append)
    progress.add("before ")
    progress.close()
    progress.add("after ")
    progress.close()
    assert [event["text"] for event in noted] == ["before "]


def test_a_cancelled_turn_ends_its_log(server: Server) -> None:
    """Seven at once: each is cancelled at another moment of its output."""
    running = {f"cancelled {number}": "" for number in range(7)}
    for word in running:
        running[word] = start_printing(server, word)
    for word, response_id in running.items():
        until_printed(server, response_id)
        with server.http() as client:
            client.post(f"/v1/responses/{response_id}/cancel")
        assert server.ended(response_id)["status"] == "cancelled"
        until_traced(server, word)
    for response_id in running.values():
        check_end(server, response_id)


@pytest.mark.parametrize(
    ("word", "env"),
    [
        ("late", {"HERMES_TURN_TIMEOUT": "1"}),
        ("alone", {"HERMES_UNATTENDED_MINUTES": "0.02", "HERMES_LEASE_SECS": "1"}),
    ],
)
def test_a_turn_that_runs_out_of_time_ends_its_log(
    make_server: Callable[..., Server], word: str, env: dict[str, str]
) -> None:
    server = make_server(**env)
    response_id = start_printing(server, word)
    until_traced(server, word)
    assert server.ended(response_id)["incomplete_details"]["reason"] == "time_limit"
    check_end(server, response_id)
