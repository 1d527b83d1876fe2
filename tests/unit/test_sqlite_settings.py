"""What every connection to SQLite is set to, while the suite itself does not flush commits."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from gateway_app.config.databases import read_database

FULL = 2
ON = 1


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("journal_mode", "wal"),
        ("synchronous", FULL),
        ("busy_timeout", 20_000),
        ("secure_delete", ON),
    ],
)
def test_each_connection_sets_it(tmp_path: Path, name: str, expected: object) -> None:
    url = f"sqlite:///{tmp_path / 'hermes.sqlite3'}"
    database, _ = read_database(url, timeout_secs=10, pool_size=4)
    with closing(sqlite3.connect(database["NAME"])) as connection:
        connection.executescript(database["OPTIONS"]["init_command"])
        assert connection.execute(f"PRAGMA {name}").fetchone() == (expected,)
