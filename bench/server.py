"""Figures of the server's process and of its database, read from outside."""

import os
from pathlib import Path

from tests.support.server import Server, eventually

TIDY_SECS = 30


def cpu_secs(server: Server) -> float:
    """Of /proc: psutil would be a dependency for these two lines."""
    assert server.process is not None
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def count_segments(server: Server, response_id: str) -> int:
    rows = server.query("SELECT count(*) FROM responses_app_eventsegment WHERE response_id = ?", response_id)
    count: int = rows[0][0]
    return count


def count_commits(server: Server, response_ids: list[str]) -> int:
    """Commits that stored events, by their times; two in one millisecond count once."""
    places = ", ".join("?" * len(response_ids))
    sql = f"SELECT commit_marks FROM responses_app_eventsegment WHERE response_id IN ({places})"
    rows = server.query(sql, *response_ids)
    times = set()
    for (marks,) in rows:
        for mark in marks.split(","):
            times.add(mark.partition(":")[2])
    return len(times)


def wait_until_tidy(server: Server) -> None:
    """Waits until every log is merged, so that no case pays for the one before."""
    unmerged = "SELECT 1 FROM responses_app_response WHERE NOT is_log_merged LIMIT 1"
    eventually(lambda: not server.query(unmerged), TIDY_SECS, "the merge of all logs")
