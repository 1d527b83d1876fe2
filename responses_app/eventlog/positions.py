"""Positions of a log: where a public event is, and how far each log reaches."""

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
        found = segment_at(response_id, (low + high) // 2).values_list(
            "first_position", "last_position", "first_sequence", "next_sequence"
        )
        row = found.first()
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
    """In the segment that holds the event, or in what a merge has put in its place."""
    for segment in read_segments(response_id, first_position - 1, limit=1):
        at = segment.first_sequence - 1
        for position, frame in enumerate(split_frames(segment.data), segment.first_position):
            if not frame.startswith(INTERNAL_FRAME_PREFIX):
                at += 1
            if at == sequence:
                return position
    return None


def newest_positions(response_ids: Sequence[str]) -> dict[str, int]:
    """How far each log reaches, by one index seek per log; a log that was erased is left out."""
    newest = EventSegment.objects.filter(response_id=OuterRef("pk")).order_by("-first_position")
    reach: dict[str, int] = {}
    for start in range(0, len(response_ids), IDS_PER_QUERY):
        chunk = response_ids[start : start + IDS_PER_QUERY]
        rows = Response.objects.filter(pk__in=chunk)
        annotated = rows.annotate(reach=Subquery(newest.values("last_position")[:1]))
        for response_id, position in annotated.values_list("pk", "reach"):
            if position is not None:
                reach[response_id] = position
    return reach
