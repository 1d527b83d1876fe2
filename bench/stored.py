"""What a server has stored, read behind its back."""

from typing import Any

import psycopg

from bench.targets import Serve
from tests.support.databases import query


def _rows(target: Serve, sql: str, *values: Any) -> list[tuple[Any, ...]]:
    return query(target.home, target.database_url, sql, values)


def segments_of(target: Serve, response_id: str) -> int:
    [(count,)] = _rows(target, "SELECT count(*) FROM responses_app_eventsegment WHERE response_id = ?", response_id)
    return int(count)


def logs_are_merged(target: Serve) -> bool:
    """Of all responses that have ended."""
    ended = "SELECT 1 FROM responses_app_response WHERE is_log_merged = ? AND finished_at IS NOT NULL LIMIT 1"
    return not _rows(target, ended, False)


def stored_bytes(target: Serve) -> int:
    """Pages in use, with their indexes; pages that are free will be used again."""
    if target.database_url is not None:
        with psycopg.connect(target.database_url, autocommit=True) as connection:
            connection.execute("VACUUM FULL")  # what updates and deletes left is free, as on SQLite
        [(size,)] = _rows(target, "SELECT pg_database_size(current_database())")
        return int(size)
    [(pages,)] = _rows(target, "PRAGMA page_count")
    [(free,)] = _rows(target, "PRAGMA freelist_count")
    [(page_bytes,)] = _rows(target, "PRAGMA page_size")
    return int((pages - free) * page_bytes)
