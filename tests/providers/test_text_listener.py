"""The short way of text: from the provider to the listener, without an event for each piece."""

import asyncio
import threading
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from gateway_app.agent.answer_buffer import AnswerBuffer
from gateway_app.agent.events import AnswerStarted, RoundEvent, RoundFinished, TextDelta
from gateway_app.agent.model_call import ModelCall
from gateway_app.agent.rounds import ask
from responses_app.protocol.items import item_text
from responses_app.protocol.text_buffer import TextBuffer
from tests.support.model_stub import Call, Calls, Cut, Finish, Gate, Step, Text, Thought
from tests.support.providers import BACKOFF_SECS, CALL, Providers

pytestmark = pytest.mark.parametrize("mode", ["chat_completions", "codex_responses"])


@dataclass
class Listener:
    """Records as a turn does: an event with text opens or extends it, any other closes it."""

    takes_text: bool = True
    must_wait: bool = False  # for the disk, before each write
    open_text: TextBuffer | None = None
    written: list[str] = field(default_factory=list)
    writing_tasks: list[asyncio.Task[None] | None] = field(default_factory=list)
    recorded: list[str] = field(default_factory=list)

    async def write(self, texts: list[str]) -> bool:
        await asyncio.sleep(0)
        return self._write(texts)

    def write_now(self, texts: list[str]) -> bool:
        return not self.must_wait and self._write(texts)

    def _write(self, texts: list[str]) -> bool:
        if not self.takes_text:
            return False
        assert self.open_text is not None
        for text in texts:
            self.open_text.add(text)
        self.written += texts
        self.writing_tasks.append(asyncio.current_task())
        self.recorded += texts
        return True

    def receive(self, event: RoundEvent) -> None:
        if isinstance(event, TextDelta):
            self.open_text = self.open_text or TextBuffer()
            self.open_text.add(event.text)
            self.recorded.append(event.text)
        elif not isinstance(event, AnswerStarted):
            self.open_text = None


@dataclass
class Received:
    listener: Listener
    answer: AnswerBuffer
    finish: RoundFinished

    @property
    def text_of_answer(self) -> str:
        return "".join(map(item_text, self.answer.items()))


async def receive_round(
    providers: Providers, mode: str, *steps: Step, listener: Listener | None = None, **fields: Any
) -> Received:
    providers.stub.play(*steps)
    listener = listener or Listener()
    call: ModelCall = replace(CALL, text_listener=listener, **fields)
    answer = AnswerBuffer()
    last: RoundEvent | None = None
    async for event in ask([providers.provider(mode)], call, 2, answer, BACKOFF_SECS):
        listener.receive(event)
        last = event
    assert isinstance(last, RoundFinished)
    return Received(listener, answer, last)


WORDS = [Text("one "), Text("two "), Text("three "), Text("four")]
WHOLE = "one two three four"


async def test_all_text_behind_the_first_piece_is_written(providers: Providers, mode: str) -> None:
    received = await receive_round(providers, mode, *WORDS, Finish())
    assert "".join(received.listener.recorded) == WHOLE
    assert received.listener.recorded[0] not in received.listener.written
    assert received.listener.recorded[-1] in received.listener.written
    assert received.text_of_answer == WHOLE
    assert received.answer.chars == len(WHOLE)


async def test_a_listener_that_takes_no_text_gets_the_events(providers: Providers, mode: str) -> None:
    received = await receive_round(providers, mode, *WORDS, Finish(), listener=Listener(takes_text=False))
    assert received.listener.written == []
    assert ("".join(received.listener.recorded), received.text_of_answer) == (WHOLE, WHOLE)


async def test_a_listener_that_has_to_wait_is_waited_for(providers: Providers, mode: str) -> None:
    received = await receive_round(providers, mode, *WORDS, Finish(), listener=Listener(must_wait=True))
    assert received.listener.recorded[-1] in received.listener.written
    assert ("".join(received.listener.recorded), received.text_of_answer) == (WHOLE, WHOLE)
    assert received.answer.chars == len(WHOLE)


async def test_text_that_comes_alone_wakes_no_task(providers: Providers, mode: str) -> None:
    gates = [threading.Event(), threading.Event()]
    for number, opened in enumerate(gates, 1):
        asyncio.get_running_loop().call_later(0.1 * number, opened.set)
    received = await receive_round(providers, mode, *WORDS[:2], Gate(gates[0]), *WORDS[2:], Gate(gates[1]), Finish())
    assert received.listener.written[-2:] == ["three ", "four"]
    assert received.listener.writing_tasks[-1] is None
    assert received.text_of_answer == WHOLE


async def test_a_stop_sequence_is_found_where_pieces_meet(providers: Providers, mode: str) -> None:
    received = await receive_round(providers, mode, *WORDS, Finish(), chat_extras={"stop": ["o three"]})
    assert received.listener.written == []
    assert ("".join(received.listener.recorded), received.text_of_answer) == ("one tw", "one tw")


async def test_what_is_no_text_is_an_event_in_its_place(providers: Providers, mode: str) -> None:
    received = await receive_round(
        providers, mode, Thought("hm"), *WORDS, Calls((Call("call_1", "echo", ('{"a": 1}',)),)), Finish("tool_calls")
    )
    assert received.text_of_answer.endswith(WHOLE)
    assert "".join(received.listener.recorded) == WHOLE
    assert [call.name for call in received.answer.calls()] == ["echo"]


async def test_an_answer_that_breaks_off_is_continued_from_all_that_was_written(
    providers: Providers, mode: str
) -> None:
    providers.stub.play(*WORDS[:3], Cut())
    received = await receive_round(providers, mode, WORDS[3], Finish())
    assert "".join(received.listener.recorded) == WHOLE
    assert received.text_of_answer == WHOLE
    assert "one two three" in providers.shown(1)


async def test_characters_that_no_database_takes_are_replaced(providers: Providers, mode: str) -> None:
    received = await receive_round(providers, mode, Text("a"), Text("b\0c"), Finish())
    assert received.text_of_answer == "ab\ufffdc"
    assert "".join(received.listener.recorded) == "ab\ufffdc"
