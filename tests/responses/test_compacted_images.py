"""Compacting a conversation in which the user sent more than text."""

from typing import Any

import pytest

from tests.support.server import Server

pytestmark = pytest.mark.any_database
IMAGE = {"type": "input_image", "image_url": "https://example.org/a.png"}
TEXT = {"type": "input_text", "text": "look"}


@pytest.mark.parametrize("content", [[IMAGE], [TEXT, IMAGE]])
def test_a_message_with_an_image_is_kept(server: Server, content: list[dict[str, Any]]) -> None:
    items = [{"role": "user", "content": content}, {"role": "assistant", "content": "I see"}]
    with server.http() as client:
        answer = client.post("/v1/responses/compact", json={"model": None, "input": items})
    assert answer.status_code == 200, answer.text
    kept, compaction = answer.json()["output"]
    assert [part["type"] for part in kept["content"]] == [part["type"] for part in content]
    assert compaction["type"] == "compaction"


@pytest.mark.parametrize("conversation", ["conv_unknown", [1]])
def test_a_conversation_is_a_field_that_compact_does_not_know(server: Server, conversation: Any) -> None:
    body = {"model": None, "input": "hello", "conversation": conversation}
    with server.http() as client:
        answer = client.post("/v1/responses/compact", json=body)
    assert answer.status_code == 200, answer.text
    assert "conversation" in answer.headers["x-hermes-ignored"]
