"""Positions of a log: that of a public event, and the newest one of each log."""

from collections.abc import Sequence

from django.db.models import OuterRef, Subquery

from responses_app.eventlog.reading import read_last, read_segments, segment_at
from responses_app.models import EventSegment, Response
from responses_app.protocol.sse import INTERNAL_FRAME_PREFIX, split_frames

IDS_PER_QUERY = 500


def position_of_sequence(response_id: str, sequence: int) -> int | None:
    """The log position of a public event, or None when the log does not reach it.

    Sequence numbers have no index, but they grow with the positions: a bisection of these takes
    one index seek per step. No event has a sequence number beyond its position.
    """
    newest = read_last(response_id)
    if newest is None or newest.next_sequence <= sequence:
        return None
    low, high = sequence, newest.last_position
    while low <= high:
        middle = segment_at(response_id, (low + high) // 2)
        row = middle.values_list(
            "first_position", "last_position", "first_sequence", "next_sequence"
        ).first()
        if row is None:
            return None
        first_position, last_position, first_sequence, next_sequence = row
        if next_sequence <= sequence:
            low = last_position + 1
        elif first_sequence > sequence:
            high = first_position - 1
        else:
            return _position_inside(response_id, first_position, sequence)
    return None


def _position_inside(response_id: str, first_position: int, sequence: int) -> int | None:
    """In the segment that holds the event, or in the merged one that has replaced it."""
    for segment in read_segments(response_id, first_position - 1, limit=1):
        current = segment.first_sequence - 1
        for position, frame in enumerate(split_frames(segment.data), segment.first_position):
            if not frame.startswith(INTERNAL_FRAME_PREFIX):
                current += 1
            if current == sequence:
                return position
    return None


def newest_positions(response_ids: Sequence[str]) -> dict[str, int]:
    """The last position of each log, by one index seek per log; an erased log is left out."""
    segments = EventSegment.objects.filter(response_id=OuterRef("pk")).order_by("-first_position")
    newest = Subquery(segments.values("last_position")[:1])
    positions: dict[str, int] = {}
    for start in range(0, len(response_ids), IDS_PER_QUERY):
        chunk = response_ids[start : start + IDS_PER_QUERY]
        rows = Response.objects.filter(pk__in=chunk)
        annotated = rows.annotate(newest=newest)
        for response_id, position in annotated.values_list("pk", "newest"):
            if position is not None:
                positions[response_id] = position
    return positions
