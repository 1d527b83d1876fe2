"""Numbers that JSON or a database can't carry, from a model's server: they cost no answer."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.checker import check_log
from tests.support.model_stub import (
    Finish,
    ModelStub,
    Raw,
    sse,
)
from tests.support.server import Server, text

pytestmark = pytest.mark.any_database

ENDLESS = float("-inf")
HUGE = 10**19
OPAQUE = {"type": "vendor_call", "id": "v1", "score": float("inf"), "ratio": float("nan"), "count": 10**30}


@pytest.fixture
def answering(make_server: Callable[..., Server], stub: ModelStub, mode: str) -> Server:
    named = {"HERMES_PROVIDER": "custom", "HERMES_MODEL": "m-1", "HERMES_BASE_URL": stub.url}
    return make_server(**named, HERMES_API_MODE=mode, HERMES_STREAM_RETRIES="0")


def worded(mode: str) -> Raw:
    unlikely = {"token": "no", "logprob": ENDLESS, "bytes": None}
    entry = {"token": "yes", "logprob": ENDLESS, "bytes": None, "top_logprobs": [unlikely]}
    if mode == "chat_completions":
        choice = {"index": 0, "delta": {"content": "yes"}, "logprobs": {"content": [entry]}}
        return Raw(sse({"id": "x", "choices": [choice]}))
    event = {"type": "response.output_text.delta", "output_index": 0, "delta": "yes"}
    return Raw(sse({**event, "logprobs": [entry]}))


def ask(server: Server, **fields: Any) -> dict[str, Any]:
    with server.http() as client:
        answer = client.post("/v1/responses", json={"input": "hi", **fields})
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    check_log(server, body["id"])
    return body


def test_numbers_without_end_are_cleaned(answering: Server, stub: ModelStub, mode: str) -> None:
    assert b"-Infinity" in worded(mode).data
    stub.play(worded(mode), Finish())
    body = ask(answering, include=["message.output_text.logprobs"], top_logprobs=1)
    assert (body["status"], text(body)) == ("completed", "yes")
    [entry] = body["output"][0]["content"][0]["logprobs"]
    assert (entry["logprob"], entry["top_logprobs"][0]["logprob"]) == (-9999.0, -9999.0)
    stub.play(worded(mode), Finish(usage={"input": HUGE, "output": HUGE, "cached": 0, "written": 0, "reasoned": 0}))
    assert ask(answering)["status"] == "completed"


@pytest.mark.parametrize("mode", ["codex_responses"], indirect=True)
def test_an_item_of_another_kind_keeps_what_json_can_carry(answering: Server, stub: ModelStub) -> None:
    item = {"type": "response.output_item.done", "output_index": 0, "item": OPAQUE}
    stub.play(Raw(sse(item)), Finish())
    body = ask(answering)
    assert body["status"] == "completed"
    [kept] = [item for item in body["output"] if item["type"] == "vendor_call"]
    assert (kept["score"], kept["ratio"], kept["count"]) == (None, None, 1e30)
    assert "Infinity" not in json.dumps(body)
