"""PgBouncer in transaction mode, in front of the PostgreSQL server of the suite."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.ports import free_port
from tests.support.server import eventually

CONFIG = """
[databases]
* = host=127.0.0.1 port={database_port} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
max_client_conn = 500
default_pool_size = 20
"""


@contextmanager
def pgbouncer(database_port: int) -> Iterator[int]:
    """The port on which it listens."""
    program = shutil.which("pgbouncer") or "/usr/sbin/pgbouncer"
    folder = Path(tempfile.mkdtemp(prefix="hermes-pgbouncer-"))
    port = free_port()
    config = folder / "pgbouncer.ini"
    config.write_text(CONFIG.format(database_port=database_port, port=port))
    prefix = []
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres", "postgres")
        shutil.chown(config, "postgres", "postgres")
        prefix = ["runuser", "-u", "postgres", "--"]
    process = subprocess.Popen([*prefix, program, str(config)], cwd="/", stderr=subprocess.DEVNULL)
    try:
        eventually(lambda: _listens(port), 10, "PgBouncer")
        yield port
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
