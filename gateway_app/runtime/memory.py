"""Memory of a process that serves: less is kept than Python and the C library keep by themselves."""

import ctypes
import gc

# Parameters of glibc's ``mallopt``. Without the first, each thread has a heap of its own. Without
# the second, freed memory stays with the process after its first large buffer.
M_ARENA_MAX = -8
M_TRIM_THRESHOLD = -1
TRIM_BYTES = 512 * 1024  # more than asyncio takes for each read: the heap would grow and shrink
YOUNG_OBJECTS = 10_000  # after so many new ones the collector looks for cycles; a request has few


def limit_heaps() -> None:
    """Before threads begin; C libraries without this function have one heap anyway."""
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        set_option(M_ARENA_MAX, 1)
        set_option(M_TRIM_THRESHOLD, TRIM_BYTES)


def spare_collections() -> None:
    """What is there at the first start stays: a collection that visited it would stop all streams."""
    if gc.get_freeze_count():
        return
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS)
