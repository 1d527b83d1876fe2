"""Turns that raise in a worker: it goes on with the others."""

from collections.abc import Callable

from tests.support.cluster import Cluster, frozen
from tests.support.damaged_logs import change_internal_events
from tests.support.server import eventually, script, text
from tests.support.stored_rows import count_rows, status_of


def test_a_turn_that_its_worker_cannot_read_ends_and_holds_up_no_other(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(HERMES_MAX_ATTEMPTS="2", HERMES_MAX_CONCURRENT="1", HERMES_LEASE_SECS="600")
    first, second = cluster.worker(), cluster.worker()
    web = cluster.web()
    with frozen(second):
        asked = script({"say": "before "}, {"call": "effect", "arguments": {"gate": "never"}})
        damaged = str(web.openai().responses.create(model="hermes-agent", input=asked, background=True).id)
        eventually(lambda: text(web.body(damaged)) == "before ")
        eventually(lambda: count_rows(web, "toolevent", response_id=damaged) == 1)
        first.kill()
        change_internal_events(web, damaged, b'"usage":{', b'"usbge":{')
    behind = [web.openai().responses.create(model="hermes-agent", input="hello", background=True).id for _ in range(3)]
    for response_id in behind:
        assert web.ended(response_id)["status"] == "completed"
    eventually(lambda: status_of(web, damaged) == "failed", 20, "the end of the damaged turn")
