"""Documents are read by a few processes, which owners share fairly."""

import asyncio

import pytest

from gateway_app.documents.readers import ReaderQueue


class Documents:
    """Each is read until the test lets it end."""

    def __init__(self, total: int) -> None:
        self.queue = ReaderQueue(total)
        self.began: list[str] = []
        self.gates: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def read(self, name: str, owner: int) -> None:
        self.gates[name] = asyncio.Event()
        self.tasks[name] = asyncio.create_task(self._read(name, owner))
        await settle()

    async def _read(self, name: str, owner: int) -> None:
        async with self.queue.slot(owner):
            self.began.append(name)
            await self.gates[name].wait()

    async def end(self, name: str) -> None:
        self.gates[name].set()
        await self.tasks[name]
        await settle()


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_one_owner_holds_one_reader_and_another_owner_gets_the_next() -> None:
    documents = Documents(2)
    for name in ("a1", "a2", "a3"):
        await documents.read(name, 1)
    await documents.read("b1", 2)
    assert documents.began == ["a1", "b1"]
    await documents.end("a1")
    assert documents.began == ["a1", "b1", "a2"]
    for name in ("b1", "a2", "a3"):
        await documents.end(name)


async def test_owners_that_wait_take_turns() -> None:
    documents = Documents(1)
    for name, owner in (("a1", 1), ("a2", 1), ("a3", 1), ("b1", 2), ("b2", 2), ("c1", 3)):
        await documents.read(name, owner)
    for name in ("a1", "a2", "b1", "c1", "a3", "b2"):
        assert documents.began[-1] == name
        await documents.end(name)


@pytest.mark.parametrize("name", ["a1", "a2", "b1"])
async def test_a_turn_that_is_cancelled_keeps_no_reader(name: str) -> None:
    documents = Documents(1)
    for other, owner in (("a1", 1), ("a2", 1), ("b1", 2)):
        await documents.read(other, owner)
    documents.tasks[name].cancel()
    await settle()
    for other in ("a1", "a2", "b1"):
        if other != name:
            await documents.end(other)
    await documents.read("last", 1)
    assert documents.began[-1] == "last"
    await documents.end("last")


async def test_a_cancel_at_the_moment_of_admission_gives_the_reader_back() -> None:
    documents = Documents(1)
    await documents.read("a1", 1)
    await documents.read("b1", 2)
    documents.gates["a1"].set()
    await asyncio.sleep(0)  # a1 has left, and b1 is admitted, but has not run
    documents.tasks["b1"].cancel()
    await settle()
    await documents.read("c1", 3)
    assert documents.began[-1] == "c1"
    await documents.end("c1")
