"""Databases that are migrated once: each server of the suite gets a copy."""

from itertools import count
from pathlib import Path

from tests.support.databases import PostgresCluster
from tests.support.server import Server, copy_home

TEMPLATE = "template_home"
_NUMBERS = count(1)  # of the databases that this process made


class Database:
    """Makes servers, each on a migrated database of its own."""

    def __init__(self, template: Path, cluster: PostgresCluster | None) -> None:
        self.template = template
        self.cluster = cluster
        self.env: dict[str, str] = {}
        if cluster is not None:
            # A worker that runs tests of both databases in turn comes back to one that it had.
            cluster.execute(f"DROP DATABASE IF EXISTS {TEMPLATE} WITH (FORCE)")
            cluster.execute(f"CREATE DATABASE {TEMPLATE}")
            self.env = {"DATABASE_URL": cluster.url(TEMPLATE)}
        Server(template, **self.env).manage("migrate", "--verbosity", "0")

    def server(self, home: Path, kind: type[Server], **env: str) -> Server:
        if self.cluster is not None:
            name = f"home_{next(_NUMBERS)}"
            self.cluster.execute(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE}")
            env = {"DATABASE_URL": self.cluster.url(name), **env}
        return kind(copy_home(self.template, home), **env)
