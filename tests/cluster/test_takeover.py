"""Workers that die or freeze: others go on with their turns, and those that wake can't write."""

import os
import signal
import time
from collections.abc import Callable

import pytest

from tests.support.checker import check_log
from tests.support.cluster import Cluster
from tests.support.server import Server, created_id, eventually, script, streaming, text
from tests.support.stored_rows import stored_rows

pytestmark = pytest.mark.fault
GATED = script({"say": "before "}, {"gate": "go"}, {"say": "after"})


def test_the_turn_of_a_killed_worker_goes_on_in_another_within_seconds(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster()
    first = cluster.worker()
    web = cluster.web()
    with streaming(web, model="hermes-agent", input=GATED) as (_, received):
        response_id = created_id(next(received))
        eventually(lambda: text(web.body(response_id)) == "before ")
        cluster.worker()
        first.kill()
        killed_at = time.monotonic()
        eventually(lambda: attempts(web, response_id) == 2)
        assert time.monotonic() - killed_at < 5
        web.open_gate("go")
        assert list(received)[-1] == b"data: [DONE]\n\n"
    assert text(web.ended(response_id)) == "before after"
    check_log(web, response_id)


def test_a_worker_that_wakes_after_its_lease_writes_nothing(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster()
    frozen = cluster.worker()
    web = cluster.web()
    assert frozen.process is not None
    response_id = web.openai().responses.create(model="hermes-agent", input=GATED, background=True).id
    eventually(lambda: text(web.body(response_id)) == "before ")
    cluster.worker()
    os.kill(frozen.process.pid, signal.SIGSTOP)
    try:
        eventually(lambda: attempts(web, response_id) == 2, 20, "the claim by another worker")
        web.open_gate("go")
        body = web.ended(response_id)
    finally:
        os.kill(frozen.process.pid, signal.SIGCONT)
    eventually(lambda: "was overtaken" in frozen.log, 20, "the end of the first attempt")
    assert text(body) == "before after"
    assert web.body(response_id) == body
    check_log(web, response_id)


def attempts(server: Server, response_id: str) -> int:
    [(attempt,)] = stored_rows(server, "response", "attempt", id=response_id)
    return int(attempt)
