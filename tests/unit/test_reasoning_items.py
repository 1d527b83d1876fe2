"""Both forms of reasoning: how they are built, and that every reader reads them."""

import pytest

from responses_app.protocol.builder import OutputBuilder
from responses_app.protocol.items import Item
from responses_app.protocol.reasoning_items import RAW, SUMMARY, reasoning_text
from responses_app.protocol.token_estimate import estimate_tokens
from responses_app.services.history.resent_history import hash_after
from responses_app.services.history.transcript import messages_of
from tests.support.output_builders import RESPONSE_ID, created_event

RAW_ITEM: Item = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [],
    "content": [{"type": "reasoning_text", "text": "hm " * 50}],
}
SUMMARY_ITEM: Item = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "hm " * 50}],
}
ANSWER: Item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Yes."}]}


def builder() -> OutputBuilder:
    return OutputBuilder(RESPONSE_ID, [created_event()])


@pytest.mark.parametrize("item", [RAW_ITEM, SUMMARY_ITEM])
def test_readers_find_the_text_in_either_form(item: Item) -> None:
    assert reasoning_text(item) == "hm " * 50
    [message] = messages_of([item, ANSWER])
    assert (message["reasoning"], message["reasoning_content"], message["content"]) == ("hm " * 50, "hm " * 50, "Yes.")
    # Neither is sent to the model again, nor does a client have to send it back.
    assert estimate_tokens([item, ANSWER], None, []) == estimate_tokens([SUMMARY_ITEM, ANSWER], None, [])
    assert hash_after("", [item, ANSWER]) == hash_after("", [ANSWER])


def test_each_item_has_one_form_and_its_part_is_closed_before_the_next() -> None:
    built = builder()
    built.reasoning("raw ", RAW)
    built.reasoning("text", RAW)
    built.reasoning("in short", SUMMARY)
    built.text("Yes.")
    kinds = [event["type"].removeprefix("response.") for event in built.take()]
    assert kinds == [
        *("output_item.added", "content_part.added", "reasoning_text.delta", "reasoning_text.delta"),
        *("reasoning_text.done", "content_part.done", "output_item.done"),
        *("output_item.added", "reasoning_summary_part.added", "reasoning_summary_text.delta"),
        *("reasoning_summary_text.done", "reasoning_summary_part.done", "output_item.done"),
        *("output_item.added", "content_part.added", "output_text.delta"),
    ]
    raw, summary, _ = built.output
    assert (raw["summary"], raw["content"]) == ([], [{"type": "reasoning_text", "text": "raw text"}])
    assert (summary["summary"], "content" in summary) == ([{"type": "summary_text", "text": "in short"}], False)


def test_raw_reasoning_that_a_crash_cut_off_ends_incomplete_in_the_next_attempt() -> None:
    before = builder()
    before.reasoning("half a ", RAW)
    log = [created_event(), *before.take()]
    after = OutputBuilder(RESPONSE_ID, log)
    after.close("incomplete")
    done, part_done, item_done = after.take()
    assert (done["type"], done["text"]) == ("response.reasoning_text.done", "half a ")
    assert part_done["part"] == {"type": "reasoning_text", "text": "half a "}
    assert (item_done["item"]["status"], item_done["item"]["content"]) == ("incomplete", [part_done["part"]])
    after.reasoning("again", RAW)
    assert len(after.output) == 2


def test_raw_reasoning_can_be_sealed() -> None:
    built = builder()
    built.reasoning("hm", RAW)
    built.seal_reasoning("c2VhbA==")
    [item] = built.output
    assert (item["status"], item["encrypted_content"]) == ("completed", "c2VhbA==")
    assert reasoning_text(item) == "hm"
