"""Many ids in a few queries."""

from collections.abc import Iterable, Iterator

CHUNK = 500  # databases limit the parameters of a statement


def in_chunks(ids: Iterable[str]) -> Iterator[list[str]]:
    chunk: list[str] = []
    for one in ids:
        chunk.append(one)
        if len(chunk) == CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
