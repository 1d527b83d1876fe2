"""What a tail keeps in memory of a response, however long it becomes."""

import tracemalloc

from responses_app.eventlog.segments import Segment
from responses_app.eventlog.tails import TAIL_BYTES, Tail

FRAME = b'event: response.output_text.delta\ndata: {"delta":"word "}\n\n'


def segment(position: int) -> Segment:
    """As a slow model makes them: one for every word."""
    return Segment("resp_x", 1, position, position, position, position + 1, (FRAME + b"%d" % position,))


def test_a_tail_costs_no_more_than_it_may_however_small_its_segments() -> None:
    tail = Tail()
    tracemalloc.start()
    try:
        for position in range(20_000):
            tail.publish(segment(position))
        grown, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert grown < TAIL_BYTES * 1.2
    assert tail.after(0) is None
    newest = tail.after(19_900)
    assert newest is not None
    assert [found.first_position for found in newest] == list(range(19_901, 20_000))


def test_a_tail_drops_what_its_only_reader_has() -> None:
    tail = Tail()
    for position in range(10):
        tail.publish(segment(position))
    with tail.reading():
        tail.note_taken(9)
    assert tail.after(8) == [segment(9)]
    assert tail.after(7) is None
    tail.publish(segment(10))
    assert tail.after(8) == [segment(9), segment(10)]


def test_a_tail_keeps_what_one_of_several_readers_lacks() -> None:
    tail = Tail()
    for position in range(10):
        tail.publish(segment(position))
    with tail.reading(), tail.reading():
        tail.note_taken(9)
    assert tail.after(-1) == [segment(position) for position in range(10)]


def test_the_log_of_an_unstored_response_stays_whole() -> None:
    tail = Tail(is_volatile=True)
    for position in range(10):
        tail.publish(segment(position))
    with tail.reading():
        tail.note_taken(9)
    assert len(tail.whole()) == 10
