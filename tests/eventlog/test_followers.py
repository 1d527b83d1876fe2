"""Readers that take events without waking their task."""

import asyncio

from responses_app.eventlog.followers import Alarm, Follower
from responses_app.eventlog.segments import Segment
from responses_app.eventlog.tails import Tail


def segment(position: int, *, is_final: bool = False) -> Segment:
    frame = b"event: x\ndata: %d\n\n" % position
    return Segment("resp_x", 1, position, position, position, position + 1, (frame,), is_final)


class Reader:
    def __init__(self, tail: Tail, alarm: Alarm) -> None:
        self.taken: list[int] = []
        self.is_broken = False
        self.follower = Follower(self._take, alarm)
        self._tail = tail

    def wait(self, position: int) -> "asyncio.Task[None]":
        self.follower.position = position
        return asyncio.create_task(self._tail.wait(self._tail.version, self.follower))

    def _take(self, segment: Segment) -> bool:
        if self.is_broken:
            raise OSError("the connection is broken")
        self.taken.append(segment.first_position)
        return True


async def test_a_reader_takes_events_until_the_last_one_wakes_it() -> None:
    tail = Tail()
    with Alarm(30.0) as alarm:
        reader = Reader(tail, alarm)
        waiting = reader.wait(-1)
        await asyncio.sleep(0)
        for position in range(3):
            tail.publish(segment(position))
        await asyncio.sleep(0)
        assert (reader.taken, waiting.done()) == ([0, 1, 2], False)
        tail.publish(segment(3, is_final=True))
        await waiting
    assert (reader.taken, reader.follower.position) == ([0, 1, 2], 2)


async def test_a_reader_takes_nothing_behind_a_gap() -> None:
    tail = Tail()
    with Alarm(30.0) as alarm:
        reader = Reader(tail, alarm)
        waiting = reader.wait(4)
        await asyncio.sleep(0)
        tail.publish(segment(6))
        await waiting
    assert (reader.taken, reader.follower.position) == ([], 4)


async def test_a_broken_connection_keeps_no_other_reader_waiting() -> None:
    tail = Tail()
    with Alarm(30.0) as first_alarm, Alarm(30.0) as second_alarm:
        broken = Reader(tail, first_alarm)
        broken.is_broken = True
        other = Reader(tail, second_alarm)
        waiting = [broken.wait(-1), other.wait(-1)]
        await asyncio.sleep(0)
        tail.publish(segment(0))
        await waiting[0]
        assert other.taken == [0]
        waiting[1].cancel()
        await asyncio.wait(waiting)
