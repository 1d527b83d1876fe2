"""What the model is shown after a kill -9: the context that the running loop would have shown it."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from gateway_app.agent.answer_buffer import CONTINUE
from tests.support.approvals import decide, until_parked
from tests.support.checker import check_log
from tests.support.model_stub import (
    Begun,
    Call,
    Calls,
    Cut,
    Finish,
    Gate,
    ModelStub,
    Raw,
    Step,
    Text,
    Thought,
    sse,
)
from tests.support.restarts import has_output, start_and_kill
from tests.support.scripted_requests import call, effects, start_background
from tests.support.server import (
    Server,
    eventually,
    script,
    text,
)
from tests.support.stored_rows import stored_rows

pytestmark = [pytest.mark.any_database, pytest.mark.fault]

NEVER = Gate(threading.Event())
CHAT_ONLY = pytest.mark.parametrize("mode", ["chat_completions"])  # the stricter of the two


@pytest.fixture
def front(make_server: Callable[..., Server], stub: ModelStub, mode: str) -> Server:
    env = {"HERMES_PROVIDER": "custom", "HERMES_BASE_URL": stub.url, "HERMES_MODEL": "m", "HERMES_API_MODE": mode}
    return make_server(**env)


def shown(stub: ModelStub, request: int) -> list[dict[str, Any]]:
    """The conversation in a request, without the system's part."""
    body = stub.asked[request].body
    items: list[dict[str, Any]] = body.get("messages") or body["input"]
    return [item for item in items if item.get("role") != "system"]


def text_of(item: dict[str, Any]) -> str:
    content: str | list[dict[str, str]] = item["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


@pytest.mark.parametrize("behind", [Thought("hm hm "), Begun(Call("c1", "_hidden", ('{"te',)))])
def test_words_are_continued_whatever_broke_off_behind_them(front: Server, stub: ModelStub, behind: Step) -> None:
    stub.play(Text("one "), behind, NEVER)
    stub.play(Text("two"), Finish())
    response_id = start_and_kill(front, lambda: len(stub.asked) == 1 and has_output(front, _trace_of(behind)))
    body = front.ended(response_id)
    assert (body["status"], text(body)) == ("completed", "one two")
    assert [text_of(item) for item in shown(stub, 1)[-2:]] == ["one ", CONTINUE]
    check_log(front, response_id)


def _trace_of(step: Step) -> str:
    return "hm hm" if isinstance(step, Thought) else "'completed'"  # what is hidden closes the message before it


def test_a_document_with_reasoning_behind_it_is_not_followed_by_another(make_server: Callable[..., Server]) -> None:
    server = make_server()
    steps = ({"say": '{"a": 1}'}, {"think": "hm"}, {"gate": "never"})
    schema = {"format": {"type": "json_object"}}
    response_id = start_and_kill(server, lambda: has_output(server, "hm"), *steps, text=schema)
    body = server.ended(response_id)
    assert (body["status"], body["incomplete_details"]) == ("incomplete", {"reason": "server_interrupted"})
    assert text(body) == '{"a": 1}'


def test_words_before_a_whole_call_are_not_continued(make_server: Callable[..., Server]) -> None:
    """Its result is what the model goes on from, also when the process died before the round was over."""
    server = make_server()
    reported = script({"say": "half "}, {"gate": "rest"}, {"say": "whole"})
    steps = ({"say": "so "}, call("_hidden", text=reported), {"gate": "never"})
    response_id = start_and_kill(
        server,
        lambda: any(
            b"hermes.tool.called" in bytes(frames) for (frames,) in stored_rows(server, "eventsegment", "frames")
        ),
        *steps,
    )
    server.open_gate("rest")
    assert text(server.ended(response_id)) == "so half whole"
    assert CONTINUE not in server.model_calls("half ")[-1]["texts"]
    check_log(server, response_id)


EFFECT = Call("c1", "effect", ('{"text": "done"}',))
BESIDE = Call("c1", "parallel_effect", ('{"text": "done"}',))
SLOW = Call("c2", "parallel_effect", ('{"text": "safe", "gate": "slow"}',))
GUARDED = Call("c2", "guarded", ('{"text": "allowed"}',))
MCP = {"tools": [{"type": "mcp", "server_label": "hermes"}]}


@CHAT_ONLY
@pytest.mark.parametrize(("calls", "fields"), [((EFFECT, SLOW), {}), ((SLOW, BESIDE), MCP)])
def test_words_beside_calls_come_before_their_outputs(
    front: Server, stub: ModelStub, calls: tuple[Call, ...], fields: dict[str, Any]
) -> None:
    stub.play(Calls(calls), Text("Both."), Finish("tool_calls"))

    def is_half_done() -> bool:
        return effects(front, "safe") == 1 and has_output(front, "'output': 'done'")

    response_id = start_and_kill(front, is_half_done, **fields)
    front.open_gate("slow")
    assert front.ended(response_id)["status"] == "completed"
    assert [message["role"] for message in shown(stub, 1)] == ["user", "assistant", "tool", "tool"]
    assert shown(stub, 1)[1]["content"] == "Both."
    check_log(front, response_id)


@CHAT_ONLY
def test_words_beside_a_call_that_waits_for_consent_come_before_its_output(front: Server, stub: ModelStub) -> None:
    stub.play(Calls((EFFECT, GUARDED)), Text("Both."), Finish("tool_calls"))
    response_id = start_background(front)
    until_parked(front, response_id)
    decide(front, response_id, "once")
    assert front.ended(response_id)["status"] == "completed"
    assert [message["role"] for message in shown(stub, 1)] == ["user", "assistant", "tool", "tool"]


@CHAT_ONLY
def test_the_note_on_a_cut_call_comes_behind_the_outputs_of_whole_ones(front: Server, stub: ModelStub) -> None:
    stub.play(Calls((SLOW,)), Begun(Call("c3", "effect", ('{"text": "x',))), Cut())
    response_id = start_and_kill(front, lambda: effects(front, "safe") == 1)
    front.open_gate("slow")
    assert front.ended(response_id)["status"] == "completed"
    assert [message["role"] for message in shown(stub, 1)] == ["user", "assistant", "tool"]
    assert "was cut off" in text_of(shown(stub, 1)[-1])
    check_log(front, response_id)


SEALED = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "sealed"}
THINKS = Raw(sse({"type": "response.output_item.done", "output_index": 0, "item": SEALED}))
SHOWN: dict[str, Any] = {"include": ["reasoning.encrypted_content"]}
RESPONSES_ONLY = pytest.mark.parametrize("mode", ["codex_responses"])  # the other has no sealed reasoning


@RESPONSES_ONLY
def test_sealed_reasoning_that_led_to_nothing_is_not_sent_back(front: Server, stub: ModelStub) -> None:
    stub.play(Thought("deep"), THINKS, NEVER)
    stub.play(Text("done"), Finish())
    response_id = start_and_kill(front, lambda: has_output(front, "sealed"), **SHOWN)
    assert text(front.ended(response_id)) == "done"
    assert "sealed" not in str(shown(stub, 1))
    check_log(front, response_id)


@RESPONSES_ONLY
def test_sealed_reasoning_of_a_cancelled_turn_is_not_sent_in_the_next(front: Server, stub: ModelStub) -> None:
    stub.play(Thought("deep"), THINKS, NEVER)
    cancelled = start_background(front, **SHOWN)
    eventually(lambda: has_output(front, "sealed"), what="the thought")
    front.openai().responses.cancel(cancelled)
    front.ended(cancelled)
    front.ended(start_background(front, previous_response_id=cancelled))
    assert "sealed" not in str(shown(stub, 1))


def test_what_was_thought_before_a_kill_counts_against_the_limit(front: Server, stub: ModelStub) -> None:
    stub.play(Thought("word " * 60), NEVER)
    stub.play(Text("done"), Finish())
    response_id = start_and_kill(front, lambda: has_output(front, "word "), max_output_tokens=100)
    assert text(front.ended(response_id)) == "done"
    limits = [asked.body.get("max_tokens") or asked.body.get("max_output_tokens") for asked in stub.asked]
    assert limits == [100, 25]
    check_log(front, response_id)
