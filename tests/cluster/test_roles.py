"""Web processes and workers: where turns run, and what readers of another process see."""

from collections.abc import Callable

from tests.support.checker import check_log
from tests.support.cluster import Cluster
from tests.support.server import created_id, eventually, script, streaming, text
from tests.support.stored_rows import stored_rows


def test_a_turn_runs_in_a_worker_and_is_streamed_by_the_web_process(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster()
    worker = cluster.worker()
    web = cluster.web()
    asked = script({"say": "before "}, {"gate": "go"}, {"say": "after"})
    with streaming(web, model="hermes-agent", input=asked) as (_, received):
        response_id = created_id(next(received))
        eventually(lambda: text(web.body(response_id)) == "before ")
        assert lease_role(worker, response_id) == "worker"
        web.open_gate("go")
        rest = list(received)
    assert rest[-1] == b"data: [DONE]\n\n"
    assert text(web.ended(response_id)) == "before after"
    check_log(web, response_id)


def lease_role(server: Cluster, response_id: str) -> str:
    [(owner,)] = stored_rows(server, "response", "lease_owner", id=response_id)
    [(role,)] = stored_rows(server, "runtimeprocess", "role", id=owner)
    return str(role)
