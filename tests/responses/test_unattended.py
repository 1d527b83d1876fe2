"""A response without readers ends; one with a reader, here or by polling, does not."""

from collections.abc import Callable

import pytest

from tests.support.approvals import decide, until_waiting
from tests.support.checker import check_log
from tests.support.scripted_requests import call, start_background
from tests.support.server import (
    Server,
    eventually,
    script,
    streaming,
    text,
)
from tests.support.stored_rows import stored_rows

pytestmark = pytest.mark.any_database

ENDLESS = script({"say": "words "}, {"gate": "never"})
QUICK = {"HERMES_UNATTENDED_MINUTES": "0.02", "HERMES_LEASE_SECS": "1"}  # 1.2 s


def test_only_responses_without_readers_are_ended(make_server: Callable[..., Server]) -> None:
    server = make_server(**QUICK)
    with streaming(server, input=ENDLESS) as (_, received):
        read = next(received)
        with server.http() as client:
            alone: str = client.post("/v1/responses", json={"input": ENDLESS, "background": True}).json()["id"]
            polled: str = client.post("/v1/responses", json={"input": ENDLESS, "background": True}).json()["id"]

        def is_over() -> bool:
            server.body(polled)
            return stored_rows(server, "response", "finished_at", id=alone) != [(None,)]

        eventually(is_over, what="the end of the response without readers")
        open_rows = stored_rows(server, "response", "id", order_by="id", status="in_progress")
        assert {row[0] for row in open_rows} >= {polled}
        assert len(open_rows) == 2
    body = server.ended(alone)
    assert (body["status"], body["incomplete_details"]["reason"]) == ("incomplete", "time_limit")
    assert text(body) == "words "
    check_log(server, alone)
    assert read


def test_what_waits_for_consent_does_not_run(make_server: Callable[..., Server]) -> None:
    server = make_server(**QUICK)
    waiting = start_background(server, call("guarded", text="patient"))
    until_waiting(server, waiting)
    alone = start_background(server, {"say": "x"}, {"gate": "never"})
    eventually(
        lambda: stored_rows(server, "response", "finished_at", id=alone) != [(None,)],
        what="the end of the response without readers",
    )
    decide(server, waiting, "once")
    assert server.ended(waiting)["status"] == "completed"


def test_a_cancellation_from_within_ends_the_response(server: Server) -> None:
    response_id = start_background(server, call("deserter"))
    body = server.ended(response_id)
    assert (body["status"], body["incomplete_details"]) == ("incomplete", {"reason": "server_interrupted"})
    check_log(server, response_id)
