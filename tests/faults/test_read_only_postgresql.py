"""An address of PostgreSQL that leads to a standby for a while: sessions begun there take no writes."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.support.checker import check_log
from tests.support.databases import PostgresCluster
from tests.support.server import Server, created_id, eventually, script, streaming, text

GATED = script({"say": "before "}, {"gate": "go"}, {"say": "after"})


@contextmanager
def read_only(cluster: PostgresCluster, server: Server) -> Iterator[None]:
    """For new sessions; those that are open end."""
    name = server.env["DATABASE_URL"].rpartition("/")[2]
    cluster.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    cluster.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
    try:
        yield
    finally:
        cluster.execute(f'ALTER DATABASE "{name}" RESET default_transaction_read_only')


def test_no_session_outlives_the_time_in_which_its_server_took_no_writes(
    prepare: Callable[..., Server], own_cluster: PostgresCluster
) -> None:
    server = prepare().start()
    with streaming(server, model="hermes-agent", input=GATED) as (_, received):
        response_id = created_id(next(received))
        eventually(lambda: text(server.body(response_id)) == "before ")
        with read_only(own_cluster, server), server.http() as http:
            server.open_gate("go")
            refused = http.post("/v1/responses", json={"input": "while it takes no writes"})
            assert (refused.status_code, refused.json()["error"]["code"]) == (503, "storage_unavailable")
            assert http.post("/v1/conversations", json={}).status_code == 503
        assert list(received)[-1] == b"data: [DONE]\n\n"
    assert text(server.ended(response_id)) == "before after"
    check_log(server, response_id)
    assert server.openai().responses.create(model="hermes-agent", input="back").status == "completed"
    assert server.openai().conversations.create().id
    assert "Traceback" not in server.log
