"""Leases and heartbeats: by the database's clock, and never taken from a process that lives."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.checker import check_log
from tests.support.other_machines import IsolatedServer, SkewedServer, can_isolate
from tests.support.server import (
    Server,
    eventually,
    script,
    server_beside,
    text,
)
from tests.support.stored_rows import stored_rows, update_rows

LOST = {"state": "lost", "exit_reason": "the process is gone"}
RELEASED = {"lease_owner": "", "lease_until": None, "crashes": 1}
LONG_AGO = "2020-01-01 00:00:00+00:00"
LEFT_BY_A_DEAD_OWNER = {"lease_owner": "gone", "lease_until": LONG_AGO}
SKEW_SECS = 30
ENV = {"HERMES_LEASE_SECS": "3", "HERMES_SWEEP_SECS": "0.1"}


def begin(server: Server) -> str:
    asked = script({"say": "before "}, {"gate": "go"}, {"say": "after"})
    response_id = server.openai().responses.create(model="hermes-agent", input=asked, background=True).id
    eventually(lambda: text(server.body(response_id)) == "before ")
    return response_id


def until_all_have_beaten(server: Server, count: int) -> None:
    before = set(stored_rows(server, "runtimeprocess", "id", "heartbeat_at"))

    def have_beaten() -> bool:
        now = set(stored_rows(server, "runtimeprocess", "id", "heartbeat_at"))
        return len(now) == count and not now & before

    eventually(have_beaten, 30, "a heartbeat of each")


def until_the_dead_are_judged(server: Server, count: int) -> None:
    """Every process beats, and one of them has released what an unknown owner left."""
    left = begin(server)
    update_rows(server, "response", LEFT_BY_A_DEAD_OWNER, id=left)
    until_all_have_beaten(server, count)
    eventually(
        lambda: stored_rows(server, "response", "attempt", "crashes", "lease_owner", id=left)[0][:2] == (2, 1),
        60,
        "the claim of what a dead owner left",
    )
    until_all_have_beaten(server, count)


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_hosts_whose_clocks_are_wrong_take_no_work_and_lose_none(
    make_server: Callable[..., Server], tmp_path: Path
) -> None:
    server = make_server(**ENV)
    with ExitStack() as stack:
        servers = [server]
        for skew in (SKEW_SECS, -SKEW_SECS):
            home = tmp_path / f"skewed{skew}"
            other = server_beside(server, home, SkewedServer, TEST_CLOCK_SKEW_SECS=str(skew), **ENV)
            stack.callback(other.kill)
            servers.append(other.start())
        ids = [begin(each) for each in servers]
        before = [
            stored_rows(server, "response", "attempt", "crashes", "lease_owner", id=response_id) for response_id in ids
        ]
        assert [found[0][:2] for found in before] == [(1, 0)] * 3
        until_the_dead_are_judged(server, 3)
        assert [
            stored_rows(server, "response", "attempt", "crashes", "lease_owner", id=response_id) for response_id in ids
        ] == before


@pytest.mark.any_database
def test_a_step_of_the_databases_clock_takes_no_work_away(make_server: Callable[..., Server], tmp_path: Path) -> None:
    server = make_server(**ENV)
    other = server_beside(server, tmp_path / "other", Server, **ENV)
    try:
        other.start()
        ids = [begin(each) for each in (server, other)]
        until_the_dead_are_judged(server, 2)
        update_rows(server, "runtimeprocess", {"heartbeat_at": LONG_AGO})
        for response_id in ids:
            update_rows(server, "response", {"lease_until": LONG_AGO}, id=response_id)
        until_all_have_beaten(server, 2)
        for response_id in ids:
            assert stored_rows(server, "response", "attempt", "crashes", id=response_id) == [(1, 0)]
    finally:
        other.kill()


@pytest.mark.any_database
@pytest.mark.skipif(not can_isolate(), reason="PID namespaces need root and util-linux")
def test_containers_with_one_hostname_do_not_declare_each_other_dead(
    make_server: Callable[..., Server], tmp_path: Path
) -> None:
    server = make_server(IsolatedServer, **ENV)
    response_id = begin(server)
    before = stored_rows(server, "response", "attempt", "crashes", "lease_owner", id=response_id)
    other = server_beside(server, tmp_path / "other", IsolatedServer, **ENV)
    try:
        other.start()
        until_all_have_beaten(server, 2)
        found = stored_rows(server, "runtimeprocess", "host", "state")
        assert found == [(found[0][0], "running")] * 2
        assert stored_rows(server, "response", "attempt", "crashes", "lease_owner", id=response_id) == before
    finally:
        other.kill()


@pytest.mark.any_database
def test_a_process_that_was_declared_lost_is_alive_when_it_beats_and_its_taken_work_stays_fenced(
    make_server: Callable[..., Server],
) -> None:
    server = make_server(**ENV)
    response_id = begin(server)
    update_rows(server, "runtimeprocess", LOST)
    update_rows(server, "response", RELEASED, id=response_id)
    eventually(
        lambda: stored_rows(server, "runtimeprocess", "state", "exit_reason") == [("running", "")],
        30,
        "the return of the process",
    )
    eventually(
        lambda: stored_rows(server, "response", "attempt", "crashes", "lease_owner", id=response_id)[0][:2] == (2, 1),
        30,
        "the next attempt",
    )
    server.open_gate("go")
    assert text(server.ended(response_id)) == "before after"
    check_log(server, response_id)
    assert stored_rows(server, "response", "attempt", "crashes", "lease_owner", id=response_id) == [(2, 1, "")]
