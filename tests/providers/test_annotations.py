"""Citations of a chat upstream are kept, in the shape of each API."""

from typing import Any

import pytest

from gateway_app.agent.events import Annotation, ModelEvent
from gateway_app.providers.openai.chat_completions.annotations import from_chat, to_chat
from tests.support.model_stub import Answer, Finish, ModelStub, Raw, Text, sse
from tests.support.providers import CALL, Providers

CITED = {"url": "https://example.invalid/a", "title": "A", "start_index": 0, "end_index": 2}
IN_CHAT = {"type": "url_citation", "url_citation": CITED}
IN_RESPONSES = {"type": "url_citation", **CITED}


def chunk(**delta: Any) -> Raw:
    return Raw(sse({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}))


async def annotations(providers: Providers) -> list[ModelEvent]:
    provider = providers.provider("chat_completions")
    return [event async for event in provider.stream(CALL) if isinstance(event, Annotation)]


async def test_those_of_deltas_arrive_once(providers: Providers) -> None:
    providers.stub.play(Text("so"), chunk(annotations=[IN_CHAT]), chunk(content=".", annotations=[IN_CHAT]), Finish())
    assert await annotations(providers) == [Annotation(IN_RESPONSES)]


async def test_those_of_a_whole_message_arrive(providers: Providers) -> None:
    whole = ModelStub.whole("chat_completions", (Text("so"), Finish()))
    providers.stub.play(Answer(200, whole.replace(b'"content"', b'"annotations": [%s], "content"' % _json(IN_CHAT), 1)))
    assert await annotations(providers) == [Annotation(IN_RESPONSES)]


def _json(value: Any) -> bytes:
    return sse(value).removeprefix(b"data: ").strip()


@pytest.mark.parametrize("given", [None, "x", {}, {"type": 7}])
def test_what_is_no_annotation_is_left_out(given: Any) -> None:
    assert from_chat(given) is None


def test_a_citation_has_the_fields_that_clients_require() -> None:
    found = from_chat({"type": "url_citation", "url_citation": {"url": "u"}})
    assert found == {"type": "url_citation", "url": "u", "title": "", "start_index": 0, "end_index": 0}


def test_both_shapes_hold_the_same() -> None:
    assert from_chat(IN_RESPONSES) == from_chat(IN_CHAT) == IN_RESPONSES
    assert to_chat(IN_RESPONSES) == IN_CHAT
    file_citation = {"type": "file_citation", "file_id": "f", "index": 3}
    assert from_chat(to_chat(file_citation)) == file_citation
