"""A turn that goes on from a long log: the event loop serves others while the log is read."""

import asyncio
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest

from gateway_app.runtime.runner import Runner
from responses_app.database import database
from responses_app.models import InputItem, Response
from tests.support.event_logs import store_log

pytestmark = pytest.mark.django_db(transaction=True)
WORDS = 2000
QUESTION = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]}


@contextmanager
def calls_of_this_thread() -> Iterator[Counter[str]]:
    calls: Counter[str] = Counter()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            calls[frame.f_code.co_name] += 1

    sys.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(None)


async def test_a_long_log_is_decoded_and_rebuilt_beside_the_event_loop() -> None:
    database.writer.start(asyncio.get_running_loop())
    try:
        row, _ = await database.write(lambda: store_log(WORDS, attempt=1))
        await database.write(lambda: InputItem.objects.create(response=row, position=0, item=QUESTION))
        runner = Runner()
        with calls_of_this_thread() as calls:
            runner.hint(row.pk, row.owner_id)
            assert await runner.wait_until_idle(60)
        ended = await database.read(lambda: Response.objects.get(pk=row.pk))
        assert ended.output is not None
        assert ended.output[0]["content"][0]["text"].startswith("w0 w1 ")
        assert calls["settle"] > 0  # what runs on the loop is counted
        assert calls["decode_frame"] < WORDS / 10
        assert calls["apply"] < WORDS / 10
        assert calls["_read"] < WORDS / 10
    finally:
        await asyncio.to_thread(database.writer.stop)
