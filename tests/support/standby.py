"""A synchronous standby of a PostgreSQL server, which takes over its address."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.databases import PostgresCluster, find_program, run_as_postgres
from tests.support.ports import free_port
from tests.support.server import eventually

SYNCHRONOUS = "SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')"


class Standby(PostgresCluster):
    def promote_at(self, port: int) -> None:
        """As a virtual address does that moves to another machine."""
        self._control("-w", "promote")
        self.stop("fast")
        self.port = port
        self.start()


@contextmanager
def synchronous_standby(primary: PostgresCluster) -> Iterator[Standby]:
    """From here on, each commit of the primary waits for it."""
    program = find_program("pg_basebackup")
    assert program is not None
    folder = Path(tempfile.mkdtemp(prefix="hermes-standby-"))
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres", "postgres")
    standby = Standby(folder, free_port())
    source = ("-h", "127.0.0.1", "-p", str(primary.port), "-U", "postgres")
    run_as_postgres(program, *source, "-D", str(standby.data), "-R", "-X", "stream", "-c", "fast", "--no-sync")
    standby.start()
    try:
        primary.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        primary.execute("SELECT pg_reload_conf()")
        eventually(lambda: primary.value(SYNCHRONOUS) == 1, 20, "synchronous replication")
        yield standby
    finally:
        standby.stop("immediate")
        shutil.rmtree(folder, ignore_errors=True)
