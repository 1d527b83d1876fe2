"""Hints across processes. Polls, sweeps and renewals are turned off here: what comes, came by a hint."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpx
import pytest

from tests.support.approvals import decide, until_parked
from tests.support.cluster import Cluster
from tests.support.people import create_key
from tests.support.server import Server, created_id, eventually, frames, script, streaming, text

pytestmark = pytest.mark.timeout(60)
WITHOUT_POLLS = {"TEST_POLL_SECS": "600", "HERMES_LEASE_SECS": "600", "HERMES_SWEEP_SECS": "60"}


@pytest.fixture
def web(make_cluster: Callable[..., Cluster]) -> Server:
    """Beside a worker and another web process."""
    cluster = make_cluster(**WITHOUT_POLLS)
    cluster.worker()
    cluster.web()
    return cluster.web()


@contextmanager
def following(server: Server, response_id: str, key: str | None = None) -> Iterator[Iterator[bytes]]:
    path = f"/v1/responses/{response_id}"
    with server.http(key) as client, client.stream("GET", path, params={"stream": "true"}) as answer:
        assert answer.status_code == 200, answer.read()
        yield frames(answer)


def until_delta(received: Iterator[bytes], delta: str) -> None:
    for frame in received:
        if b"output_text.delta" in frame and delta.encode() in frame:
            return
    raise AssertionError(f"{delta} did not come")


def test_each_event_of_a_worker_reaches_the_readers_of_every_web_process(
    make_cluster: Callable[..., Cluster],
) -> None:
    cluster = make_cluster(**WITHOUT_POLLS)
    cluster.worker()
    first, second = cluster.web(), cluster.web()
    steps = []
    for number in range(5):
        steps += [{"gate": f"gate{number}"}, {"say": f"word{number} "}]
    with streaming(first, model="hermes-agent", input=script(*steps)) as (_, received):
        response_id = created_id(next(received))
        with following(second, response_id) as also_received:
            for number in range(5):
                first.open_gate(f"gate{number}")
                until_delta(received, f"word{number}")
                until_delta(also_received, f"word{number}")
            assert list(received)[-1] == list(also_received)[-1] == b"data: [DONE]\n\n"


def test_a_cancellation_reaches_the_worker_that_runs_the_turn(web: Server) -> None:
    asked = script({"say": "before "}, {"gate": "never"})
    response_id = web.openai().responses.create(model="hermes-agent", input=asked, background=True).id
    with following(web, response_id) as received:
        until_delta(received, "before")
        web.openai().responses.cancel(response_id)
        assert b'"status":"cancelled"' in list(received)[-2]


def test_a_turn_that_waits_for_a_slot_is_cancelled_while_no_worker_answers(
    make_cluster: Callable[..., Cluster],
) -> None:
    cluster = make_cluster(**WITHOUT_POLLS, HERMES_MAX_CONCURRENT="1")
    worker = cluster.worker()
    web = cluster.web()
    asked = script({"say": "before "}, {"gate": "go"})
    running = web.openai().responses.create(model="hermes-agent", input=asked, background=True).id
    eventually(lambda: text(web.body(running)) == "before ")
    waiting = web.openai().responses.create(model="hermes-agent", input=asked, background=True).id
    assert worker.process is not None
    worker.process.send_signal(signal.SIGSTOP)
    web.openai().responses.cancel(waiting)
    assert web.ended(waiting)["status"] == "cancelled"
    worker.process.send_signal(signal.SIGCONT)
    web.open_gate("go")
    assert web.ended(running)["status"] == "completed"


def test_a_decision_starts_the_turn_that_waits_for_it(web: Server) -> None:
    asked = script({"call": "guarded", "arguments": {}})
    response_id = web.openai().responses.create(model="hermes-agent", input=asked, background=True).id
    until_parked(web, response_id)
    assert decide(web, response_id, "once").status_code == 200
    assert web.ended(response_id)["status"] == "completed"


def test_the_streams_of_a_revoked_key_end_in_every_process(web: Server) -> None:
    key = create_key(web, "leaver")
    asked = script({"say": "before "}, {"gate": "never"})
    with streaming(web, key, model="hermes-agent", input=asked) as (_, received):
        until_delta(received, "before")
        web.manage("revokekey", "leaver")
        with pytest.raises(httpx.TransportError):
            list(received)
