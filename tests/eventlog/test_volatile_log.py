"""The log of a response that is not stored: all of it in memory, in little more than its text."""

import random
import string
import tracemalloc

from responses_app.eventlog import Numbering, Segment
from responses_app.eventlog.tails import TAIL_BYTES, Tail
from tests.support.event_logs import MESSAGE, PART, word

WORDS = 40_000


def some_words(count: int) -> list[str]:
    chance = random.Random(7)
    vocabulary = ["".join(chance.choices(string.ascii_lowercase, k=chance.randint(3, 8))) for _ in range(5000)]
    return [chance.choice(vocabulary) + " " for _ in range(count)]


def published(words: list[str], tail: Tail) -> int:
    numbering = Numbering("resp_x", 1)
    tail.publish(numbering.seal([MESSAGE, PART]))
    for text in words:
        tail.publish(numbering.seal([word(text)]))
    return numbering.next_position


def frames_of(segments: list[Segment]) -> list[bytes]:
    return b"".join(segment.data for segment in segments).split(b"\n\n")[:-1]


def test_it_keeps_at_most_four_times_the_text() -> None:
    words = some_words(WORDS)
    text_bytes = sum(len(text) for text in words)
    tail = Tail(is_volatile=True)
    tracemalloc.start()
    try:
        published(words, tail)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept <= 4 * text_bytes, f"{kept / text_bytes:.1f} times the text"


def test_every_position_is_read_on_from_whether_packed_or_not() -> None:
    tail = Tail(is_volatile=True)
    count = published(some_words(1500), tail)
    whole = tail.whole()
    frames = frames_of(whole)
    assert len(frames) == count
    assert len(whole) < count  # the older ones are packed
    marks = [at for segment in whole for _, at, _ in segment.timed_frames()]
    assert len(marks) == count
    assert marks == sorted(marks)
    for start in range(-1, count, 7):
        position, found = start, list[bytes]()
        while behind := tail.after(position):
            assert behind[0].first_position == position + 1
            assert sum(len(segment.data) for segment in behind) < 2 * TAIL_BYTES
            found += frames_of(behind)
            position = behind[-1].last_position
        assert found == frames[start + 1 :]
