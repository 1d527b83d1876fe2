"""Signals to the processes of a cluster: what is under way elsewhere is not cut off."""

import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from tests.support.cluster import Cluster
from tests.support.server import Server, created_id, eventually, script, streaming, text

GATED = script({"say": "before "}, {"gate": "go"}, {"say": "after"})


def until_it_drains(server: Server) -> None:
    eventually(lambda: "Shutting down" in server.log, what="the drain")


def test_the_clients_of_a_web_process_that_stops_get_the_end_of_what_workers_run(
    make_cluster: Callable[..., Cluster],
) -> None:
    cluster = make_cluster(HERMES_SHUTDOWN_GRACE="20")
    cluster.worker()
    web = cluster.web()
    process = web.process
    assert process is not None
    stream = streaming(web, model="hermes-agent", input=GATED)
    with ThreadPoolExecutor() as pool, stream as (_, received):
        plain = pool.submit(web.openai().responses.create, model="hermes-agent", input=GATED)
        response_id = created_id(next(received))
        eventually(lambda: text(web.body(response_id)) == "before ")
        eventually(lambda: len(web.model_calls("before")) == 2)
        process.send_signal(signal.SIGTERM)
        until_it_drains(web)
        web.open_gate("go")
        assert list(received)[-1] == b"data: [DONE]\n\n"
        assert plain.result().output_text == "before after"
    assert process.wait(10) == 0


def test_the_first_signal_drains_a_worker_and_the_second_ends_it(
    make_cluster: Callable[..., Cluster],
) -> None:
    cluster = make_cluster(HERMES_SHUTDOWN_GRACE="60")
    worker = cluster.worker()
    web = cluster.web()
    process = worker.process
    assert process is not None
    responses = web.openai().responses
    response_id = responses.create(model="hermes-agent", input=GATED, background=True).id
    eventually(lambda: text(web.body(response_id)) == "before ")
    process.send_signal(signal.SIGHUP)  # as from a terminal that is closed
    until_it_drains(worker)

    def has_ended() -> bool:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        return process.poll() is not None

    # A signal within 0.25 s counts as the first.
    eventually(has_ended, what="the end of the worker")
    assert process.wait() == 128 + signal.SIGTERM
    web.open_gate("go")
    assert text(web.ended(response_id)) == "before after"
