"""Processes that start at the same moment."""

from collections.abc import Callable

from tests.support.cluster import Cluster
from tests.support.databases import unwritable
from tests.support.server import Server, eventually, server_beside
from tests.support.stored_rows import stored_rows


def test_two_that_have_other_secrets_do_not_both_stay(
    make_cluster: Callable[..., Cluster],
) -> None:
    """Each has looked for others before any of them is known."""
    cluster = make_cluster()
    first = cluster.first
    home = cluster.home.parent / "other"
    other = server_beside(first, home, Server, REDIS_URL=cluster.redis.url)
    (home / "secret_key").write_text("another-secret-of-enough-characters-for-all\n")
    cluster.members += [first, other]
    with unwritable(first.env["DATABASE_URL"], "gateway_app_runtimeprocess"):
        for server in (first, other):
            server.start()
    refused = eventually(lambda: [server for server in (first, other) if not server.is_running], 20, "an exit")
    for server in refused:
        assert server.process is not None
        assert server.process.wait(20) == 1
        assert "runs on the same database with other secrets" in server.log
    assert ("stopped",) in stored_rows(first, "runtimeprocess", "state")
