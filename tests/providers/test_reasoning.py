"""Reasoning in the forms in which model servers send it."""

from typing import Any

import pytest

from gateway_app.agent.events import CallStarted, ModelEvent, ReasoningDelta, RefusalDelta, TextDelta
from tests.support.model_stub import Call, Calls, Finish, Raw, Refusal, Step, Text, sse
from tests.support.providers import CALL, Providers, record_round

CHAT, RESPONSES = "chat_completions", "codex_responses"


def chunk(**delta: Any) -> Raw:
    return Raw(sse({"id": "c", "choices": [{"index": 0, "delta": delta}]}))


def event(kind: str, **fields: Any) -> Raw:
    return Raw(sse({"type": f"response.{kind}", **fields}))


async def deltas(providers: Providers, mode: str, *steps: Step) -> list[ModelEvent]:
    providers.stub.play(*steps)
    kinds = ReasoningDelta | TextDelta | RefusalDelta | CallStarted
    return [event async for event in providers.provider(mode).stream(CALL) if isinstance(event, kinds)]


THINKING = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
TEXT_DETAIL = {"type": "reasoning.text", "text": "Hm.", "format": "unknown", "index": 0}
SUMMARY_DETAIL = {"type": "reasoning.summary", "summary": "Hm.", "index": 0}
SEALED_DETAIL = {"type": "reasoning.encrypted", "data": "c2VhbGVk", "index": 1}


@pytest.mark.parametrize(
    ("delta", "is_summary"),
    [
        pytest.param({"reasoning_content": "Hm."}, False, id="DeepSeek, llama.cpp"),
        pytest.param({"reasoning": "Hm."}, False, id="vLLM, Ollama"),
        pytest.param({"content": [THINKING]}, False, id="Mistral"),
        pytest.param({"reasoning_details": [TEXT_DETAIL]}, False, id="OpenRouter, details alone"),
        pytest.param({"reasoning": "Hm.", "reasoning_details": [TEXT_DETAIL]}, False, id="OpenRouter"),
        pytest.param(
            {"reasoning": "Hm.", "reasoning_details": [SUMMARY_DETAIL, SEALED_DETAIL]}, True, id="OpenRouter, a summary"
        ),
    ],
)
async def test_the_fields_of_chat_servers(providers: Providers, delta: dict[str, Any], is_summary: bool) -> None:
    found = await deltas(providers, CHAT, chunk(**delta), Text("Yes."), Finish())
    assert found == [ReasoningDelta("Hm.", is_summary), TextDelta("Yes.")]


async def test_details_that_only_the_server_can_read_are_no_reasoning(providers: Providers) -> None:
    found = await deltas(providers, CHAT, chunk(content="", reasoning_details=[SEALED_DETAIL]), Text("Yes."), Finish())
    assert found == [TextDelta("Yes.")]


async def test_parts_of_one_content_are_kept_apart(providers: Providers) -> None:
    both = chunk(content=[THINKING, {"type": "text", "text": "Yes"}])
    found = await deltas(providers, CHAT, both, chunk(content="."), Finish())
    assert found == [ReasoningDelta("Hm."), TextDelta("Yes"), TextDelta(".")]


async def test_a_responses_server_sends_raw_reasoning_or_a_summary(providers: Providers) -> None:
    raw = [event("reasoning_text.delta", output_index=0, content_index=0, delta="Hm.")]
    found = await deltas(providers, RESPONSES, *raw, Text("Yes."), Finish())
    assert found == [ReasoningDelta("Hm."), TextDelta("Yes.")]
    parts = [
        event("reasoning_summary_text.delta", output_index=0, summary_index=0, delta="Hm."),
        event("reasoning_summary_part.added", output_index=0, summary_index=1),
        event("reasoning_summary_text.delta", output_index=0, summary_index=1, delta="Well."),
    ]
    found = await deltas(providers, RESPONSES, *parts, Finish())
    assert found == [ReasoningDelta(text, is_summary=True) for text in ("Hm.", "\n\n", "Well.")]


@pytest.mark.parametrize("field", ["content", "summary"])
async def test_an_item_that_comes_whole_has_one_form(providers: Providers, field: str) -> None:
    part = {"type": "reasoning_text" if field == "content" else "summary_text", "text": "Hm."}
    item = {"type": "reasoning", "id": "rs_1", "summary": [], field: [part]}
    found = await deltas(providers, RESPONSES, event("output_item.done", output_index=0, item=item), Finish())
    assert found == [ReasoningDelta("Hm.", is_summary=field == "summary")]


# -- tags in the text -------------------------------------------------------------------
async def test_tags_in_the_text_are_reasoning(providers: Providers, mode: str) -> None:
    pieces = [Text(piece) for piece in ("<thi", "nk>\nHm", ". </", "think>", "\n\n", "Yes. <think>")]
    found = await deltas(providers, mode, *pieces, Text("No."), Finish())
    assert found == [ReasoningDelta("Hm"), ReasoningDelta(". "), TextDelta("Yes. <think>"), TextDelta("No.")]


async def test_text_that_may_be_a_tag_comes_before_what_follows(providers: Providers, mode: str) -> None:
    look = Call("call_a", "look", ("{}",))
    found = await deltas(providers, mode, Text("<th"), Calls((look,)), Finish("tool_calls"))
    assert found == [TextDelta("<th"), CallStarted("call_a", "look")]
    found = await deltas(providers, mode, Text("<th"), Finish())
    assert found == [TextDelta("<th")]


async def test_a_refusal_comes_behind_the_text(providers: Providers) -> None:
    found = await deltas(providers, CHAT, Text("<th"), Refusal("No."), Finish())
    assert found == [TextDelta("<th"), RefusalDelta("No.")]


async def test_a_cut_loses_no_text(providers: Providers, mode: str) -> None:
    providers.stub.play(Text("<think>Hm. </thi"))
    providers.stub.play(Text("Yes."), Finish())
    recorded = await record_round(providers.provider(mode))
    assert (recorded.thought, recorded.text, recorded.cuts) == ("Hm. </thi", "Yes.", 1)


async def test_each_message_of_a_responses_server_may_begin_with_a_tag(providers: Providers) -> None:
    def message(index: int, text: str) -> Raw:
        part = {"type": "output_text", "text": text}
        item = {"type": "message", "id": f"m{index}", "role": "assistant", "content": [part]}
        return event("output_item.done", output_index=index, item=item)

    whole = [message(0, "<think>Hm.</think>First."), message(1, "<think>Well.</think>Second.")]
    found = await deltas(providers, RESPONSES, *whole, Finish())
    assert found == [
        *(ReasoningDelta("Hm."), TextDelta("First.")),
        *(ReasoningDelta("Well."), TextDelta("Second.")),
    ]
