"""Markers: unique words planted in requests and answers, and the search for what is left of them."""

import os
import re
import secrets
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.server import Server

_PATTERN = re.compile(rb"mk[0-9a-f]{16}")
_SLICE_BYTES = 24  # of compressed content: long enough to be unique, short enough for a remnant
# Without the pages of the search index: they are purged a little later, and in_files() looks at them too.
_SQLITE_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'responses_app_search_data'"
_POSTGRES_TABLES = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"


class Markers:
    """Each call makes a marker for one place; a search names the places whose markers it found."""

    def __init__(self) -> None:
        self._places: dict[bytes, str] = {}
        self._slices: list[bytes] = []

    def __call__(self, place: str) -> str:
        marker = "mk" + secrets.token_hex(8)
        self._places[marker.encode()] = place
        return marker

    def add_compressed(self, data: bytes) -> None:
        """Search for the bytes of a merged log, too: no marker can be read in them."""
        starts = range(0, max(1, len(data) - _SLICE_BYTES), 4 * _SLICE_BYTES)
        self._slices += [data[start : start + _SLICE_BYTES] for start in starts]

    @property
    def places(self) -> set[str]:
        return set(self._places.values())

    def found_in(self, data: bytes) -> set[str]:
        found = {self._places[word] for word in _PATTERN.findall(data) if word in self._places}
        if any(piece in data for piece in self._slices):
            found.add("a merged log")
        return found


def in_rows(server: Server, markers: Markers) -> set[tuple[str, str]]:
    """Every column of every row of every table: which table has which marker."""
    found: set[tuple[str, str]] = set()
    for table in _tables(server):
        for row in server.query(f'SELECT * FROM "{table}"'):
            for value in row:
                found |= {(table, place) for place in markers.found_in(_as_bytes(value))}
    return found


def in_files(server: Server, markers: Markers) -> set[tuple[str, str]]:
    """The bytes of the SQLite files, live or free; empty on PostgreSQL."""
    found: set[tuple[str, str]] = set()
    for suffix in ("", "-wal", "-journal", "-shm"):
        path = server.home / f"hermes.sqlite3{suffix}"
        if path.exists():
            found |= {(path.name, place) for place in markers.found_in(path.read_bytes())}
    return found


def in_temporary_files(server: Server, folder: Path, markers: Markers) -> set[tuple[str, str]]:
    """Files in the temporary folder, and files without a name that the server holds open."""
    found: set[tuple[str, str]] = set()
    for path in [*folder.rglob("*"), *_unnamed_files(server)]:
        if path.is_file():
            found |= {(str(path), place) for place in markers.found_in(path.read_bytes())}
    return found


def in_log(server: Server, markers: Markers) -> set[str]:
    return markers.found_in(server.log_path.read_bytes())


def in_metrics(server: Server, markers: Markers) -> set[str]:
    with server.http() as client:
        answer = client.get("/metrics")
    assert answer.status_code == 200, answer.text
    return markers.found_in(answer.content)


def assert_no_trace(server: Server, markers: Markers) -> None:
    """Neither a row nor a line of the log nor a metric has a marker."""
    assert in_rows(server, markers) == set()
    assert in_log(server, markers) == set()
    assert in_metrics(server, markers) == set()


def _tables(server: Server) -> list[str]:
    is_postgres = server.env.get("DATABASE_URL", "").startswith("postgres")
    rows = server.query(_POSTGRES_TABLES if is_postgres else _SQLITE_TABLES)
    return [name for (name,) in rows]


def _as_bytes(value: Any) -> bytes:
    if not isinstance(value, bytes | memoryview):
        return str(value).encode()
    data = bytes(value)
    try:
        return zlib.decompress(data)
    except zlib.error:
        return data


def _unnamed_files(server: Server) -> Iterator[Path]:
    assert server.process is not None
    for descriptor in Path(f"/proc/{server.process.pid}/fd").iterdir():
        try:
            target = os.readlink(descriptor)
        except OSError:
            continue
        if target.endswith(" (deleted)") and not target.startswith("/memfd:"):
            yield descriptor
