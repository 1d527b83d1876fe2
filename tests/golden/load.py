"""A golden set as the home of a server."""

import gzip
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
# The hour for consent was over long before this run.
STILL_WAITING = """
UPDATE responses_app_toolevent SET expires_at = '2999-01-01 00:00:00' WHERE expires_at IS NOT NULL;
UPDATE responses_app_response SET parked_until = '2999-01-01 00:00:00' WHERE parked_until IS NOT NULL;
"""


def load(name: str, home: Path) -> dict[str, dict[str, Any]]:
    """Fill the database of this home; gives each response as it was when the set was made."""
    with closing(sqlite3.connect(home / "hermes.sqlite3")) as database:
        database.executescript(gzip.decompress((FOLDER / f"{name}.sql.gz").read_bytes()).decode())
        database.executescript(STILL_WAITING)
    expected: dict[str, dict[str, Any]] = json.loads(gzip.decompress((FOLDER / f"{name}.json.gz").read_bytes()))
    return expected
