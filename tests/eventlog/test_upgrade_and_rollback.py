"""The golden logs under a version that does not know their format, and under the one that does."""

from pathlib import Path

from responses_app.models.segments import FORMAT_VERSION
from tests.golden.load import load
from tests.support.server import Server, eventually, text

SET_FORMAT = "UPDATE responses_app_eventsegment SET format_version = ?"
ROWS = "SELECT id, status, attempt, crashes, is_log_merged FROM responses_app_response ORDER BY id"
LOGS = "SELECT response_id, first_position, format_version, frames FROM responses_app_eventsegment ORDER BY id"
ENDED_BEFORE = "UPDATE responses_app_response SET finished_at = datetime('now', '-1 minute') WHERE id = ?"


def test_logs_of_a_newer_version_wait_for_it_unchanged(tmp_path: Path) -> None:
    expected = load(f"v{FORMAT_VERSION}", tmp_path)
    [waiting] = [pk for pk, found in expected.items() if found["body"]["status"] == "in_progress"]
    server = Server(tmp_path, HERMES_SWEEP_SECS="0.1")
    server.manage("migrate", "--verbosity", "0")
    server.change(SET_FORMAT, FORMAT_VERSION + 1)
    server.change("UPDATE responses_app_response SET is_log_merged = false")
    rows, logs = server.query(ROWS), server.query(LOGS)
    server.start()
    try:
        with server.http() as client:
            assert client.post(f"/v1/responses/{waiting}/approval", json={"choice": "once"}).status_code == 200
            listed = [body["id"] for body in client.get("/v1/responses").json()["data"]]
            assert sorted(listed) == sorted(expected)
            made = client.post("/v1/responses", json={"input": "hello"}).json()["id"]
            # The sweep merges the log of this one, and has passed over the older ones.
            server.change(ENDED_BEFORE, made)
            merged = "SELECT is_log_merged FROM responses_app_response WHERE id = ?"
            eventually(lambda: server.query(merged, made) == [(1,)], 30, "the merged log")
            check = client.get("/health/detailed").json()["readiness"]["checks"]["log_formats"]
        assert check == {"status": "degraded", "newer": [waiting]}
        assert [row for row in server.query(ROWS) if row[0] != made] == rows
        assert [log for log in server.query(LOGS) if log[0] != made] == logs
        server.change(SET_FORMAT, FORMAT_VERSION)
        assert text(server.ended(waiting)).startswith("may I? ")
        for response_id, found in expected.items():
            if response_id != waiting:
                assert server.body(response_id) == found["body"]
                assert [frame.decode() for frame in server.replay(response_id)] == found["frames"]
    finally:
        server.kill()
