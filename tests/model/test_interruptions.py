"""An answer that breaks off goes on: the model's server is killed in the middle of it, or this one is."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gateway_app.agent.answer_buffer import CONTINUE
from tests.support.checker import check_log
from tests.support.real_models import RealModel
from tests.support.recording_proxy import RecordingProxy
from tests.support.scripted_requests import respond
from tests.support.server import Server, created_id, events, streaming, text

END_SECS = 300
ASKED: dict[str, Any] = {"input": "Write a long story about a fox.", "temperature": 0, "max_output_tokens": 120}
DELTAS_BEFORE_THE_CUT = 12
MIN_REST_CHARS = 100
KEEPALIVE = b": keepalive\n\n"


@pytest.fixture
def server(serve: Callable[..., Server], model: RealModel, proxy: RecordingProxy) -> Server:
    return serve(model, proxy.port)


def receive_until_the_cut(received: Iterator[bytes]) -> list[bytes]:
    found: list[bytes] = []
    deltas = 0
    for frame in received:
        if frame != KEEPALIVE:
            found.append(frame)
        deltas += frame.startswith(b"event: response.output_text.delta")
        if deltas == DELTAS_BEFORE_THE_CUT:
            return found
    raise AssertionError("The answer was over before it could be cut.")


def check_continuation(server: Server, proxy: RecordingProxy, provider: str, body: dict[str, Any], whole: str) -> None:
    """The open item is closed, another one goes on, and the model was sent what it had written."""
    assert [item["type"] for item in body["output"]] == ["message", "message"]
    assert body["output"][0]["status"] == "incomplete"
    before, after = [item["content"][0]["text"] for item in body["output"]]
    assert whole.startswith(before)
    sent = proxy.bodies_with(before)[-1]["messages"]
    if provider == "llamacpp":
        assert len(after) > MIN_REST_CHARS
        assert sent[-1] == {"role": "assistant", "content": before}
        # The limit of tokens ends both, and is estimated for the part before the cut.
        length = min(len(before + after), len(whole))
        assert (before + after)[:length] == whole[:length]
    else:  # its server can't continue a message, and this model makes nothing of the note
        assert after
        assert [message["role"] for message in sent[-3:]] == ["user", "assistant", "user"]
        assert sent[-2]["content"] == before
        assert sent[-1]["content"] == CONTINUE
    assert body["usage"]["output_tokens"] <= ASKED["max_output_tokens"] + 5
    check_log(server, body["id"])


def test_an_answer_goes_on_after_the_server_of_the_model_was_killed(
    server: Server, model: RealModel, proxy: RecordingProxy
) -> None:
    whole = text(respond(server, **ASKED))
    with streaming(server, **ASKED) as (_, received):
        seen = receive_until_the_cut(received)
        proxy.refuse()
        model.kill()
        model.start()
        proxy.listen()
        seen += [frame for frame in received if frame != KEEPALIVE]
    body = server.body(created_id(seen[0]))
    assert body["status"] in ("completed", "incomplete"), body["error"]
    assert events(seen)[-1]["response"] == body
    check_continuation(server, proxy, model.provider, body, whole)


def test_an_answer_goes_on_after_kill_9_of_this_server(server: Server, model: RealModel, proxy: RecordingProxy) -> None:
    whole = text(respond(server, **ASKED))
    with streaming(server, **ASKED) as (_, received):
        seen = receive_until_the_cut(received)
        server.kill()
    server.start()
    body = server.ended(created_id(seen[0]), END_SECS)
    assert body["status"] in ("completed", "incomplete"), body["error"]
    assert server.replay(body["id"])[: len(seen)] == seen
    check_continuation(server, proxy, model.provider, body, whole)
