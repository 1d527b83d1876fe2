"""Texts of clients and upstreams are searched on the event loop: the time is linear in their length.

Each text is so long that a quadratic search would run into the time limit of the test.
"""

from collections.abc import Callable
from typing import Any

import httpx2
import openai
import pytest

from gateway_app.agent.model_call import ModelCall
from gateway_app.agent.tools import Tool
from gateway_app.providers.builtin.provider import compose
from gateway_app.providers.builtin.script import Call, words
from gateway_app.providers.openai.errors import failure_in, refusal
from responses_app.protocol.items import ContentPart, Item

LENGTH = 2_000_000


async def _never(arguments: dict[str, Any], context: Any) -> str:
    raise AssertionError


CALCULATE = Tool("calculate", "", {}, _never)


def ask(text: str) -> ModelCall:
    content: list[ContentPart] = [{"type": "input_text", "text": text}]
    item: Item = {"type": "message", "role": "user", "content": content}
    return ModelCall("m", [item], tools=(CALCULATE,))


def refused(text: str) -> openai.APIStatusError:
    answer = httpx2.Response(400, request=httpx2.Request("POST", "http://127.0.0.1/v1"))
    return openai.APIStatusError("refused", response=answer, body={"message": text})


def repeated(text: str) -> str:
    return text * (LENGTH // len(text))


HOSTILE = {
    "spaces": "calculate" + " " * LENGTH,
    "operators": "calculate " + repeated("+ "),
    "words": repeated("calculate "),
    "streams": repeated("stream "),
    "excess": repeated("exceed"),
    "long excess": "exceed " + "a" * LENGTH,
    "context": repeated("context length "),
    "negations": repeated("not "),
}
READERS: dict[str, Callable[[str], object]] = {
    "the built-in model": lambda text: compose(ask(text)),
    "words": lambda text: len(words(text + " " * LENGTH)),
    "an error in a stream": lambda text: failure_in({"message": text}),
    "a refused request": lambda text: refusal(refused(text)),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("text", HOSTILE)
def test_a_long_text_is_read_once(reader: str, text: str) -> None:
    READERS[reader](HOSTILE[text])


def test_spaces_alone_are_one_piece() -> None:
    assert words(" " * LENGTH) == [" " * LENGTH]


@pytest.mark.parametrize(
    ("asked", "expression"),
    [
        ("calculate 2 * (3 + 4), please", "2 * (3 + 4)"),
        ("calculate it: calculate 7 - 5 +", "7 - 5"),
        ("Calculate\n(1+1)) ", "(1+1))"),
        ("calculate 1.5 / 3", "1.5 / 3"),
    ],
)
def test_an_expression_ends_behind_its_last_number(asked: str, expression: str) -> None:
    call = compose(ask(asked))[-1]
    assert isinstance(call, Call)
    assert call.arguments == {"expression": expression}


@pytest.mark.parametrize(
    "message",
    [
        "Streaming is not supported for this model.",
        "This model does not support streaming",
        "Your organization must be verified to stream this model.",
        "stream: unsupported value" + " and much more" * 1000,
    ],
)
def test_an_upstream_that_cannot_stream_is_recognised(message: str) -> None:
    assert refusal(refused(message)).is_about_streaming


def test_the_reason_at_the_end_of_a_long_message_is_recognised() -> None:
    prompt = "a very long prompt " * 1000
    failure = failure_in({"message": f"Cannot answer: {prompt} exceeds the context length of 8192"})
    assert failure.code == "context_length_exceeded"
