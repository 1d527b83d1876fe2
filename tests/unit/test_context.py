"""The order in which a model is shown a conversation: calls, the text beside them, outputs, notes."""

from typing import Any, cast

import pytest

from gateway_app.agent.context import build_items, with_outputs
from responses_app.protocol.items import Item


def call(call_id: str, **fields: Any) -> Item:
    made = {"type": "function_call", "call_id": call_id, "name": "look", "arguments": "{}", **fields}
    return cast(Item, made)


def output(call_id: str) -> Item:
    return {"type": "function_call_output", "call_id": call_id, "output": "seen"}


def mcp_call(call_id: str) -> Item:
    made: Item = {"type": "mcp_call", "id": call_id, "server_label": "hermes", "name": "look"}
    made.update({"type": "mcp_call", "arguments": "{}", "output": "seen", "error": None, "status": "completed"})
    return made


def says(text: str, role: str = "assistant") -> Item:
    return {"type": "message", "role": role, "content": text}


def order(items: list[Item]) -> list[str]:
    return [
        f"{item['type'].removeprefix('function_')} {item['call_id']}" if "call_id" in item else _who(item)
        for item in items
    ]


def _who(item: Item) -> str:
    return "note" if "was cut off" in item["content"] else str(item["content"])


CUT = {"status": "incomplete"}


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([call("1"), says("w"), output("1")], ["call 1", "w", "call_output 1"]),
        ([call("1"), output("1"), says("w")], ["call 1", "call_output 1", "w"]),
        ([call("1"), output("1"), call("2"), output("2")], ["call 1", "call_output 1", "call 2", "call_output 2"]),
        ([call("1"), says("u", "user"), output("1")], ["call 1", "call_output 1", "u"]),
        ([call("1"), says("w"), says("u", "user")], ["call 1", "w", "call_output 1", "u"]),
        ([call("1"), call("2", **CUT), output("1"), says("w")], ["call 1", "call_output 1", "note", "w"]),
        ([call("1", **CUT), call("2"), output("2")], ["note", "call 2", "call_output 2"]),
        ([mcp_call("1"), mcp_call("2"), says("w")], ["call 1", "call_output 1", "call 2", "call_output 2", "w"]),
        ([output("0"), says("w")], ["w"]),
        (
            [call("1"), call("2"), call("3"), output("3"), output("1"), output("2")],
            ["call 1", "call 2", "call 3", "call_output 1", "call_output 2", "call_output 3"],
        ),
    ],
)
def test_every_call_is_answered_at_once(items: list[Item], expected: list[str]) -> None:
    shown, notes = build_items(items)
    assert (order(shown), notes) == (expected, ())


@pytest.mark.parametrize(
    ("items", "expected", "noted"),
    [
        ([call("1"), call("2"), says("w"), output("1")], ["call 1", "call 2", "w", "call_output 1"], 0),
        ([call("2"), mcp_call("1"), says("w")], ["call 2", "call 1", "w", "call_output 1"], 0),
        ([call("2"), call("3", **CUT)], ["call 2"], 1),
        ([call("1"), call("2"), call("3", **CUT), output("1")], ["call 1", "call 2", "call_output 1"], 1),
        ([call("1"), call("3", **CUT), output("1"), call("2")], ["call 1", "call_output 1", "note", "call 2"], 0),
    ],
)
def test_nothing_comes_between_a_call_that_is_about_to_run_and_its_output(
    items: list[Item], expected: list[str], noted: int
) -> None:
    shown, notes = build_items(items, pending={"2"})
    assert (order(shown), order(list(notes))) == (expected, ["note"] * noted)


def test_outputs_of_pending_calls_join_the_others_in_the_order_of_the_calls() -> None:
    made = [call("0"), output("0"), call("1"), call("2"), call("3"), output("3"), output("1")]
    shown, _ = build_items(made, pending={"2"})
    expected = ["call 0", "call_output 0", "call 1", "call 2", "call 3"]
    expected += ["call_output 1", "call_output 2", "call_output 3"]
    assert order(with_outputs(shown, [output("2")])) == expected


def test_ids_that_repeat_over_turns_are_paired_turn_by_turn() -> None:
    first, second = output("1"), output("1")
    second["output"] = "seen again"
    shown, _ = build_items([call("1"), first, says("u", "user"), call("1"), second])
    assert [item["output"] for item in shown if "output" in item] == ["seen", "seen again"]


THOUGHT: Item = {"type": "reasoning", "summary": [], "encrypted_content": "sealed"}


@pytest.mark.parametrize(
    ("items", "kept"),
    [
        ([THOUGHT, THOUGHT, says("w")], 2),
        ([THOUGHT, call("1"), output("1")], 1),
        ([THOUGHT, {"type": "web_search_call"}], 1),
        ([says("w"), THOUGHT, THOUGHT], 0),
        ([THOUGHT, THOUGHT, says("u", "user")], 0),
        ([THOUGHT, call("1", **CUT)], 0),
        ([call("1"), THOUGHT, output("1")], 0),
    ],
)
def test_a_thought_is_shown_only_with_what_it_led_to(items: list[Item], kept: int) -> None:
    shown, _ = build_items(items)
    assert shown.count(THOUGHT) == kept
