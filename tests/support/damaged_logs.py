"""Logs that another version has written, or that a disk has damaged."""

from tests.support.server import Server

SEGMENTS = "SELECT id, frames FROM responses_app_eventsegment WHERE response_id = ? ORDER BY first_position"


def change_internal_events(server: Server, response_id: str, old: bytes, new: bytes) -> None:
    """Those of clients stay as they are."""
    changed = 0
    for segment_id, frames in server.query(SEGMENTS, response_id):
        parts = bytes(frames).split(b"\n\n")
        for number, part in enumerate(parts):
            if part.startswith(b"event: hermes."):
                parts[number] = part.replace(old, new)
        sql = "UPDATE responses_app_eventsegment SET frames = ? WHERE id = ?"
        if b"\n\n".join(parts) != bytes(frames):
            changed += server.change(sql, b"\n\n".join(parts), segment_id)
    assert changed
