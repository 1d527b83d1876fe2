"""Databases that are migrated once: each server of the suite gets a copy."""

from functools import partial
from itertools import count
from pathlib import Path

from tests.support.databases import PostgresCluster
from tests.support.made_once import made_once
from tests.support.server import Server, copy_home

TEMPLATE = "template_home"
MIGRATED = "migrated_home"
DUMP = "migrated.sql"
_NUMBERS = count(1)  # of the databases that this process made


class Database:
    """Makes servers, each on a migrated database of its own."""

    def __init__(self, templates: Path, cluster: PostgresCluster | None) -> None:
        """``templates`` is a folder for what all processes of a run may copy."""
        self.cluster = cluster
        self.env: dict[str, str] = {}
        if cluster is None:
            self.template = migrated_home(templates)
            return
        self.template = made_once(templates / "postgresql", partial(_migrate_postgres, cluster))
        # A worker that runs tests of both databases in turn comes back to one that it had.
        cluster.execute(f"DROP DATABASE IF EXISTS {TEMPLATE} WITH (FORCE)")
        cluster.execute(f"CREATE DATABASE {TEMPLATE}")
        cluster.restore(TEMPLATE, self.template / DUMP)
        self.env = {"DATABASE_URL": cluster.url(TEMPLATE)}

    def server(self, home: Path, kind: type[Server], **env: str) -> Server:
        if self.cluster is not None:
            name = f"home_{next(_NUMBERS)}"
            self.cluster.execute(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE}")
            env = {"DATABASE_URL": self.cluster.url(name), **env}
        return kind(copy_home(self.template, home), **env)


def migrated_home(templates: Path) -> Path:
    """A home with a migrated SQLite database."""
    return made_once(templates / "sqlite", _migrate)


def _migrate(home: Path, **env: str) -> None:
    Server(home, **env).manage("migrate", "--verbosity", "0")


def _migrate_postgres(cluster: PostgresCluster, home: Path) -> None:
    cluster.execute(f"DROP DATABASE IF EXISTS {MIGRATED} WITH (FORCE)")
    cluster.execute(f"CREATE DATABASE {MIGRATED}")
    _migrate(home, DATABASE_URL=cluster.url(MIGRATED))
    cluster.dump(MIGRATED, home / DUMP)
