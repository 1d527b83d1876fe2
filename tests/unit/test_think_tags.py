"""Reasoning between tags at the beginning of a message, however the text is cut into deltas."""

from collections.abc import Iterator
from typing import Any

import pytest

from gateway_app.agent.events import ModelEvent, ReasoningDelta, TextDelta
from gateway_app.agent.think_tags import ThinkTags

ANSWER = "<think>\nHm, 1 < 2. </thin is no end.\n</think>\n\nIt is <b>2</b>."
SPLIT = ("Hm, 1 < 2. </thin is no end.\n", "It is <b>2</b>.")


def play(deltas: Iterator[str] | list[str]) -> list[ModelEvent]:
    tags = ThinkTags()
    events: list[ModelEvent] = []
    for delta in deltas:
        if tags.is_over:
            events.append(TextDelta(delta))
        else:
            events += tags.feed(TextDelta(delta))
    return events + tags.release()


def joined(events: list[ModelEvent]) -> tuple[str, str]:
    reasoning = "".join(event.text for event in events if isinstance(event, ReasoningDelta))
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    return reasoning, text


@pytest.mark.parametrize("size", range(1, len(ANSWER) + 1))
def test_tags_are_found_however_they_are_split(size: int) -> None:
    events = play([ANSWER[at : at + size] for at in range(0, len(ANSWER), size)])
    assert joined(events) == SPLIT
    assert all(event != ReasoningDelta("") and event != TextDelta("") for event in events)


def test_reasoning_is_passed_on_while_it_comes() -> None:
    tags = ThinkTags()
    assert tags.feed(TextDelta("<think>one ")) == [ReasoningDelta("one ")]
    assert tags.feed(TextDelta("two <")) == [ReasoningDelta("two ")]
    assert tags.feed(TextDelta("three")) == [ReasoningDelta("<three")]
    assert tags.feed(TextDelta("</think>Yes")) == [TextDelta("Yes")]
    assert tags.is_over


@pytest.mark.parametrize(
    "text",
    [
        "Plain text.",
        "Text, then <think>no reasoning</think>.",
        "```\n<think>an example</think>\n```",
        "<thinking>The prompt asked for this tag.</thinking> Yes.",
        "<thin> is no tag",
        "The template has the opening tag.\n</think>\n\nYes.",
        "  leading spaces stay",
        "<",
        " \n",
    ],
)
def test_all_other_text_stays_as_it_is(text: str) -> None:
    assert joined(play(list(text))) == ("", text)
    assert joined(play([text])) == ("", text)


def test_ordinary_text_is_not_held_back() -> None:
    tags = ThinkTags()
    assert tags.feed(TextDelta("H")) == [TextDelta("H")]
    assert tags.is_over


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\n<think>after an empty line</think>Yes", ("after an empty line", "Yes")),
        ("[THINK]as Magistral does[/THINK]Yes", ("as Magistral does", "Yes")),
        ("<think>\n\n</think>\n\nYes", ("", "Yes")),
        ("<think>a <think> in it</think>Yes</think>", ("a <think> in it", "Yes</think>")),
        ("<think>never closed </thi", ("never closed </thi", "")),
        ("<think>nothing follows</think>\n\n", ("nothing follows", "")),
    ],
)
def test_the_forms_of_templates(text: str, expected: tuple[str, str]) -> None:
    assert joined(play(list(text))) == expected
    assert joined(play([text])) == expected


def token(text: str) -> dict[str, Any]:
    return {"token": text, "logprob": -1.0}


def test_log_probabilities_stay_with_the_text_of_their_tokens() -> None:
    tags = ThinkTags()
    assert tags.feed(TextDelta("<", (token("<"),))) == []
    assert tags.feed(TextDelta("b>", (token("b>"),))) == [TextDelta("<b>", (token("<"), token("b>")))]
    tags = ThinkTags()
    assert tags.feed(TextDelta("<think>", (token("<think>"),))) == []
    assert tags.feed(TextDelta("hm", (token("hm"),))) == [ReasoningDelta("hm")]
    closing = TextDelta("</think>\n\nYes", (token("</think>"), token("\n\n"), token("Yes")))
    assert tags.feed(closing) == [TextDelta("Yes", (token("Yes"),))]
