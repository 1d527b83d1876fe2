"""A request that joins a response and is then refused is no client of that response."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable

import pytest
from django.contrib.auth import get_user_model
from django.db import connection, connections

from responses_app.database import READ_THREADS, database
from responses_app.models import Response
from responses_app.protocol.errors import StorageUnavailable
from responses_app.protocol.items import Item
from responses_app.services.idempotency import RequestIdentity
from responses_app.services.lifecycle.admission import Admission
from responses_app.services.lifecycle.admit import admit
from responses_app.services.lifecycle.cancel import leave

pytestmark = pytest.mark.django_db(transaction=True)
QUESTION: Item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]}


@pytest.fixture
async def writer() -> AsyncIterator[None]:
    database.writer.start(asyncio.get_running_loop())
    yield
    await asyncio.to_thread(database.writer.stop)


async def in_every_reader_thread(work: Callable[[], None]) -> None:
    all_there = threading.Barrier(READ_THREADS)

    def run() -> None:
        all_there.wait(10)
        work()

    loop = asyncio.get_running_loop()
    await asyncio.gather(*(loop.run_in_executor(database._readers, run) for _ in range(READ_THREADS)))


def lose_database() -> None:
    connection.close()
    connection.settings_dict = {**connection.settings_dict, "NAME": "/nowhere/at-all"}


def find_database() -> None:
    connection.close()
    connection.settings_dict = connections.settings["default"]


def make_admission() -> Admission:
    owner, _ = get_user_model().objects.get_or_create(username="owner")
    identity = RequestIdentity(digest="same", key="same")
    return Admission(owner_id=owner.pk, model="m", items=[QUESTION], stops_with_client=True, identity=identity)


async def test_the_last_client_that_was_answered_decides(writer: None) -> None:
    admission = await database.write(make_admission)
    first = await admit(admission)
    await in_every_reader_thread(lose_database)
    try:
        with pytest.raises(StorageUnavailable):
            await admit(admission)
    finally:
        await in_every_reader_thread(find_database)
    leave(first.response_id, first.tail, first.reader)
    async with asyncio.timeout(20):
        while first.tail.clients:  # noqa: ASYNC110 -- changed in another thread
            await asyncio.sleep(0.01)
    await database.write(lambda: None)
    row = await database.read(lambda: Response.objects.get(pk=first.response_id))
    assert row.cancel_requested_at is not None
