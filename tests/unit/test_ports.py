"""No two workers of a run get the same port: a client would reach the server of another test."""

from itertools import islice

from tests.support.ports import FIRST, LAST, free_port, share

WORKERS = 4


def test_workers_share_no_port() -> None:
    size = (LAST - FIRST) // WORKERS
    found: set[int] = set()
    for number in range(WORKERS):
        found.update(islice(share(number, WORKERS), size))
    assert len(found) == WORKERS * size
    assert min(found) == FIRST
    assert max(found) == LAST - 1


def test_a_port_is_not_given_twice() -> None:
    assert free_port() != free_port()
