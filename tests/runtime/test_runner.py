"""The runner: bounded, and right without any hint."""

import asyncio
import signal
import socket
import threading
import time
from collections.abc import Callable

import pytest
from django.test import override_settings

from gateway_app.runtime.runner import Runner
from responses_app.database import database
from responses_app.eventlog.store import event_store
from responses_app.models import Response
from tests.support.checker import check_log
from tests.support.server import (
    Server,
    eventually,
    script,
    text,
)
from tests.support.stored_logs import make_response, opening, unexpected
from tests.support.stored_rows import count_rows, stored_rows


def test_without_any_hint_work_starts_waits_its_turn_and_is_cancelled(make_server: Callable[..., Server]) -> None:
    server = make_server(TEST_DISPATCHER="tests.support.scripted_provider.DeafDispatcher", HERMES_LEASE_SECS="2")
    client = server.openai()
    first = client.responses.create(model="hermes-agent", input="hello")
    second = client.responses.create(model="hermes-agent", input="again", previous_response_id=first.id)
    assert 'first: "hello"' in second.output_text
    endless = client.responses.create(
        model="hermes-agent", input=script({"say": "x "}, {"gate": "never"}), background=True
    )
    eventually(lambda: text(server.body(endless.id)) == "x ")
    assert client.responses.cancel(endless.id).status == "cancelled"


def test_more_work_than_slots_waits_for_a_slot(make_server: Callable[..., Server]) -> None:
    server = make_server(HERMES_MAX_CONCURRENT="1", HERMES_SWEEP_SECS="0.1")
    client = server.openai()
    first = client.responses.create(
        model="hermes-agent", input=script({"gate": "slot"}, {"say": "one"}), background=True
    )
    eventually(lambda: server.body(first.id)["status"] == "in_progress")
    second = client.responses.create(model="hermes-agent", input="slot-marker", background=True)
    assert not server.model_calls("slot-marker")
    server.open_gate("slot")
    assert server.ended(second.id)["status"] == "completed"
    assert server.body(first.id)["status"] == "completed"


def test_a_long_turn_keeps_its_lease(make_server: Callable[..., Server]) -> None:
    server = make_server(HERMES_LEASE_SECS="1", HERMES_SWEEP_SECS="0.1")
    asked = "write 30 words slowly"  # three leases long
    body = server.openai().responses.create(model="hermes-agent", input=asked)
    assert body.status == "completed"
    assert stored_rows(server, "response", "attempt", id=body.id) == [(1,)]


def test_clients_that_leave_while_they_are_admitted_leave_nothing_running(server: Server) -> None:
    marker = "left-at-once"
    body = script({"say": f"{marker} "}, {"gate": "never"}).replace('"', '\\"')
    content = f'{{"input": "{body}", "store": false, "stream": true}}'.encode()
    head = (
        f"POST /v1/responses HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.key}\r\n"
        f"Content-Length: {len(content)}\r\n\r\n"
    )
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.sendall(head.encode() + content)
    with server.http() as client:
        client.post("/v1/responses", json={"input": "a request behind all of them"})

    def have_all_ended() -> bool:
        return count_rows(server, "response", is_stored=False, finished_at=None) == 0

    eventually(have_all_ended, 5, "the end of the responses without readers")
    calls = [call["event"] for call in server.model_calls(marker)]
    assert calls.count("started") == calls.count("stopped")


def test_an_orderly_stop_leaves_its_work_to_the_next_start(make_server: Callable[..., Server]) -> None:
    server = make_server()
    created = server.openai().responses.create(
        model="hermes-agent", input=script({"say": "some "}, {"gate": "rest"}, {"say": "more"}), background=True
    )
    eventually(lambda: text(server.body(created.id)) == "some ")
    server.kill(signal.SIGTERM)
    states = stored_rows(server, "runtimeprocess", "state", "exit_reason")
    assert states == [("stopped", "stopped")]
    assert stored_rows(server, "response", "lease_owner") == [("",)]
    server.start()
    server.open_gate("rest")
    assert text(server.ended(created.id)) == "some more"
    check_log(server, created.id)


@pytest.mark.django_db(transaction=True)
async def test_a_claim_that_is_under_way_when_the_others_leave_is_left_too() -> None:
    def leave(runner: Runner) -> None:
        is_behind_the_claim = threading.Event()
        database.submit(is_behind_the_claim.set)
        assert is_behind_the_claim.wait(20)  # and the loop with it: no hint of the claim is sent yet
        runner.close()
        runner.interrupt()

    row = await _claimed_and(leave)
    assert (row.attempt, row.status) == (1, "in_progress")


@pytest.mark.django_db(transaction=True)
async def test_a_claim_that_waits_for_others_is_not_begun_when_the_server_stops() -> None:
    may_go_on = threading.Event()

    def close(runner: Runner) -> None:
        runner.close()
        may_go_on.set()

    row = await _claimed_and(close, before=may_go_on.wait)
    assert row.attempt == 0


@pytest.mark.django_db(transaction=True)
async def test_a_claim_that_a_late_heartbeat_refuses_is_begun_once_again() -> None:
    errors: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
    may_go_on = threading.Event()
    renewals: list[asyncio.Task[None]] = []
    runners: list[Runner] = []

    async def renew_behind_the_claim(runner: Runner) -> None:
        renewal = asyncio.create_task(runner.renew())
        await asyncio.sleep(0)  # now it waits in the writer, too
        is_behind_both = threading.Event()
        database.submit(is_behind_both.set)
        may_go_on.set()
        assert is_behind_both.wait(20)  # and the loop with it: both answers come in one turn of the loop
        await renewal

    def miss_a_heartbeat(runner: Runner) -> None:
        runner.heartbeat.note(time.monotonic() - 60)
        runners.append(runner)
        renewals.append(asyncio.create_task(renew_behind_the_claim(runner)))

    with override_settings(HERMES_MAX_CONCURRENT=3):
        row = await _claimed_and(miss_a_heartbeat, before=may_go_on.wait)
    assert errors == []
    assert row.attempt == 1
    both_slots_of_one_owner = [runners[0].reserve(row.owner_id) for _ in range(2)]
    assert both_slots_of_one_owner == [True, True]


async def _claimed_and(then: Callable[[Runner], None], before: Callable[[], object] = lambda: None) -> Response:
    database.writer.start(asyncio.get_running_loop())
    try:
        row = await database.write(make_response)
        event_store.append(opening(row)[1], event_store.tails.of(row.pk), unexpected)
        database.submit(before)
        runner = Runner()
        runner.hint(row.pk, row.owner_id)
        await asyncio.sleep(0)  # the claim is asked for; its answer comes when this task waits again
        then(runner)
        assert await runner.wait_until_idle(20)
        assert await runner.wait_until_idle(20)  # what the end of the first claim has begun
        return await database.read(lambda: Response.objects.get(pk=row.pk))
    finally:
        await asyncio.to_thread(database.writer.stop)
