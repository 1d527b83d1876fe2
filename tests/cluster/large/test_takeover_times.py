"""How soon the turn of a killed worker goes on: on another machine, where its silence alone shows its end."""

import time
from collections.abc import Callable

import pytest

from tests.support.checker import check_log
from tests.support.cluster import Cluster
from tests.support.other_machines import IsolatedWorker, can_isolate
from tests.support.server import Server, created_id, eventually, script, streaming, text
from tests.support.stored_rows import stored_rows

pytestmark = [
    pytest.mark.fault,
    pytest.mark.skipif(not can_isolate(), reason="PID namespaces need root and util-linux"),
]
GATED = script({"say": "before "}, {"gate": "go"}, {"say": "after"})
DEFAULT_LEASE_SECS = 10.0
DEFAULTS = {"HERMES_LEASE_SECS": "10", "HERMES_SWEEP_SECS": "1"}
SHORT = {"HERMES_LEASE_SECS": "3", "HERMES_SWEEP_SECS": "0.5"}  # as in docs/cluster.md


@pytest.mark.parametrize(("leases", "limit_secs"), [(SHORT, 5.0), (DEFAULTS, DEFAULT_LEASE_SECS + 2)])
def test_a_turn_goes_on_soon_after_the_end_of_its_worker(
    make_cluster: Callable[..., Cluster], leases: dict[str, str], limit_secs: float
) -> None:
    cluster = make_cluster(**leases)
    first = cluster.member(IsolatedWorker)
    web = cluster.web()
    with streaming(web, model="hermes-agent", input=GATED) as (_, received):
        response_id = created_id(next(received))
        eventually(lambda: text(web.body(response_id)) == "before ")
        cluster.worker()
        time.sleep(float(leases["HERMES_LEASE_SECS"]))  # a process judges others one lease after its start
        first.kill()
        killed_at = time.monotonic()
        eventually(lambda: attempt_of(web, response_id) == 2, 2 * limit_secs, "the next attempt")
        assert time.monotonic() - killed_at <= limit_secs
        web.open_gate("go")
        assert list(received)[-1] == b"data: [DONE]\n\n"
    assert text(web.ended(response_id)) == "before after"
    check_log(web, response_id)


def attempt_of(server: Server, response_id: str) -> int:
    [(attempt,)] = stored_rows(server, "response", "attempt", id=response_id)
    return int(attempt)
