import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from responses_app.eventlog import LogErased, Segment, read_on
from responses_app.management.examples import add_examples
from responses_app.models import Response
from responses_app.protocol.sse import DONE_FRAME, INTERNAL_FRAME_PREFIX, split_frames

POLL_SECS = 0.2


class Command(BaseCommand):
    help = "Print the stream of a stored response, byte for byte as clients received it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_examples(
            parser,
            "replay_response resp_0123 --speed 1",
            "replay_response resp_0123 --follow > events.sse",
        )
        parser.add_argument("id")
        parser.add_argument(
            "--speed",
            type=float,
            help="replay at this speed: 1 as it was recorded, 2 twice as fast (default: at once)",
        )
        parser.add_argument(
            "--after", type=int, default=-1, help="only events after this sequence_number"
        )
        parser.add_argument(
            "--internal",
            action="store_true",
            help="also the hermes.* events that no client receives",
        )
        parser.add_argument(
            "--follow", action="store_true", help="wait for more events while the response runs"
        )

    def handle(self, *args: Any, id: str, speed: float | None, after: int, **options: Any) -> None:
        if speed is not None and speed <= 0:
            raise CommandError("--speed must be above 0.")
        _check(id)
        out = sys.stdout.buffer
        last_at: int | None = None
        for at_ms, sequence, frame in _frames(id, is_followed=options["follow"]):
            if speed is not None and last_at is not None:
                out.flush()
                time.sleep(max(0, at_ms - last_at) / 1000 / speed)
            last_at = at_ms
            is_internal = frame.startswith(INTERNAL_FRAME_PREFIX)
            if sequence > after and (options["internal"] or not is_internal):
                out.write(frame)
        out.flush()


def _check(response_id: str) -> None:
    row = Response.objects.filter(pk=response_id).only("is_stored", "deleted_at").first()
    if row is None:
        raise CommandError(f"There is no response {response_id!r}; the admin lists them.")
    if row.deleted_at is not None:
        raise CommandError(
            f"The content of {response_id} was deleted at {row.deleted_at:%Y-%m-%d %H:%M} UTC."
        )
    if not row.is_stored:
        raise CommandError(f"{response_id} was made with store: false; its content was never kept.")


def _frames(response_id: str, *, is_followed: bool) -> Iterator[tuple[int, int, bytes]]:
    """Each frame with its commit time and the last sequence number; ``[DONE]`` at the end."""
    position, at_ms, sequence = -1, 0, -1
    try:
        while (segments := read_on(response_id, position)) is not None:
            for segment in segments:
                for at_ms, frame in _timed(segment):
                    sequence += not frame.startswith(INTERNAL_FRAME_PREFIX)
                    yield at_ms, sequence, frame
                position = segment.last_position
            if not segments and not is_followed:
                return
            if not segments:
                time.sleep(POLL_SECS)
    except LogErased:
        raise CommandError(f"{response_id} was deleted meanwhile.") from None
    yield at_ms, sequence + 1, DONE_FRAME


def _timed(segment: Segment) -> Iterator[tuple[int, bytes]]:
    marks = [tuple(map(int, mark.split(":"))) for mark in segment.commit_marks.split(",")]
    at = 0
    for position, frame in enumerate(split_frames(segment.data), segment.first_position):
        while at < len(marks) - 1 and marks[at][0] < position:
            at += 1
        yield marks[at][1], frame
