"""Redis that is stopped, started again, emptied, full or slow: everything works, only later."""

import os
import signal
from collections.abc import Callable, Iterator

import pytest

from tests.support.checker import check_log
from tests.support.cluster import Cluster, RedisServer, redis_server
from tests.support.server import Server, created_id, eventually, script, streaming, text

pytestmark = pytest.mark.fault


@pytest.fixture
def redis() -> Iterator[RedisServer]:
    """One for each test, which may stop it."""
    with redis_server() as running:
        yield running


@pytest.fixture
def web(make_cluster: Callable[..., Cluster]) -> Server:
    cluster = make_cluster()
    cluster.worker()
    return cluster.web()


def run_a_turn(web: Server, name: str) -> None:
    """A stream whose second part comes after its reader waits."""
    asked = script({"say": "before "}, {"gate": name}, {"say": "after"})
    with streaming(web, model="hermes-agent", input=asked) as (_, received):
        response_id = created_id(next(received))
        eventually(lambda: text(web.body(response_id)) == "before ")
        web.open_gate(name)
        assert list(received)[-1] == b"data: [DONE]\n\n"
    assert text(web.ended(response_id)) == "before after"
    check_log(web, response_id)


def test_turns_run_and_are_read_while_redis_is_stopped_and_after_it_is_back(web: Server, redis: RedisServer) -> None:
    run_a_turn(web, "with")
    redis.stop()
    run_a_turn(web, "without")
    redis.start()
    run_a_turn(web, "again")
    until_subscribed(redis, 2)
    assert "Traceback" not in web.log


def test_an_emptied_and_a_full_redis_lose_no_turn(web: Server, redis: RedisServer) -> None:
    redis.execute("FLUSHALL")
    run_a_turn(web, "emptied")
    redis.execute("CONFIG", "SET", "maxmemory", "1")
    run_a_turn(web, "full")


def test_a_redis_that_does_not_answer_blocks_neither_commits_nor_readers(web: Server, redis: RedisServer) -> None:
    assert redis.process is not None
    os.kill(redis.process.pid, signal.SIGSTOP)
    try:
        run_a_turn(web, "hung")
    finally:
        os.kill(redis.process.pid, signal.SIGCONT)
    run_a_turn(web, "awake")


def test_processes_that_start_without_redis_cancel_in_time_and_find_it_later(
    make_cluster: Callable[..., Cluster], redis: RedisServer
) -> None:
    redis.stop()
    cluster = make_cluster(HERMES_LEASE_SECS="600")  # renewals notice cancellations, too
    cluster.worker()
    web = cluster.web()
    run_a_turn(web, "without")
    asked = script({"say": "before "}, {"gate": "never"})
    cancelled = web.openai().responses.create(model="hermes-agent", input=asked, background=True).id
    eventually(lambda: text(web.body(cancelled)) == "before ")
    web.openai().responses.cancel(cancelled)
    assert web.ended(cancelled, 5)["status"] == "cancelled"
    redis.start()
    until_subscribed(redis, 2)


def until_subscribed(redis: RedisServer, processes: int) -> None:
    """Every process follows a group of hints."""
    eventually(lambda: redis.subscribers() == processes, 20, "the subscriptions")
