"""What a model is shown has the form that the strictest chat templates take, whatever was sent."""

import json
import re
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway_app.agent.context import as_note, build_items
from gateway_app.agent.model_call import ModelCall
from gateway_app.config.presets.registry import PRESETS
from gateway_app.providers.openai.chat_completions.message_rules import BRIDGE
from gateway_app.providers.openai.chat_completions.request import chat_body
from gateway_app.providers.openai.client import Upstream
from gateway_app.providers.openai.responses.request import responses_body
from responses_app.protocol.items import Item

IMAGE: Any = {"type": "input_image", "image_url": "data:image/png;base64,AA=="}
CHAT_IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
STRICT_RESPONSES = [name for name in PRESETS if name not in ("openai", "azure")]


def says(role: str, content: Any, **fields: Any) -> Item:
    return cast(Item, {"type": "message", "role": role, "content": content, **fields})


def call(call_id: str) -> Item:
    return {"type": "function_call", "call_id": call_id, "name": "look", "arguments": "{}"}


def output(call_id: str, content: Any = "seen") -> Item:
    return {"type": "function_call_output", "call_id": call_id, "output": content}


def messages(items: list[Item], preset: str = "custom", instructions: str | None = None) -> list[dict[str, Any]]:
    asked = ModelCall(model="m", items=items, instructions=instructions)
    found: list[dict[str, Any]] = chat_body(asked, Upstream(preset, "m"))["messages"]
    return found


def roles(items: list[Item], preset: str = "custom") -> list[str]:
    return [message["role"] for message in messages(items, preset)]


# -- one system message -----------------------------------------------------------------
RULED = [says("system", "S"), says("user", "hi"), says("assistant", "ho"), says("developer", "D"), says("user", "on")]


@pytest.mark.parametrize("preset", PRESETS)
def test_a_chat_upstream_gets_one_system_message_and_gets_it_first(preset: str) -> None:
    shown = messages(RULED, preset, "I")
    assert shown[0] == {"role": "system", "content": "I\n\nS\n\nD"}
    assert [message["role"] for message in shown[1:]] == ["user", "assistant", "user"]


@pytest.mark.parametrize("preset", STRICT_RESPONSES)
def test_an_upstream_of_responses_gets_them_as_its_instructions(preset: str) -> None:
    body = responses_body(ModelCall(model="m", items=RULED, instructions="I"), Upstream(preset, "m"))
    assert body["instructions"] == "I\n\nS\n\nD"
    assert [item["role"] for item in body["input"]] == ["user", "assistant", "user"]


@pytest.mark.parametrize("preset", ["openai", "azure"])
def test_openais_own_responses_api_keeps_the_order_of_the_client(preset: str) -> None:
    body = responses_body(ModelCall(model="m", items=RULED, instructions="I"), Upstream(preset, "m"))
    assert body["instructions"] == "I"
    assert [item["role"] for item in body["input"]] == ["system", "user", "assistant", "developer", "user"]


def test_an_image_in_a_system_message_is_shown_as_the_users() -> None:
    ruled = [says("system", [{"type": "input_text", "text": "The logo:"}, IMAGE]), says("user", "hi")]
    assert messages(ruled) == [
        {"role": "system", "content": "The logo:"},
        {"role": "user", "content": [CHAT_IMAGE, {"type": "text", "text": "hi"}]},
    ]
    body = responses_body(ModelCall(model="m", items=ruled), Upstream("custom", "m"))
    assert body["input"][0]["content"] == [IMAGE]


# -- notes and roles that alternate -----------------------------------------------------
NOTE = as_note("Note.")


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([says("user", "hi"), NOTE], [("user", "hi\n\nNote.")]),
        ([says("assistant", "ho"), NOTE, says("user", "hi")], [("assistant", "ho"), ("user", "Note.\n\nhi")]),
        ([says("user", "a"), says("user", "b")], [("user", "a\n\nb")]),
        ([says("assistant", "a"), says("assistant", "b")], [("assistant", "a\n\nb")]),
        ([says("assistant", "so f", status="incomplete"), says("assistant", "ar")], [("assistant", "so far")]),
        ([call("1"), output("1"), NOTE], [("assistant", None), ("tool", "seen\n\n[Note.]")]),
    ],
)
def test_no_role_follows_itself(items: list[Item], expected: list[tuple[str, str | None]]) -> None:
    assert [(message["role"], message["content"]) for message in messages(items)] == expected


@pytest.mark.parametrize("preset", PRESETS)
def test_a_note_is_no_user_message_of_its_own_in_either_protocol(preset: str) -> None:
    talk = [says("user", "hi"), call("1"), output("1"), NOTE, says("assistant", "ho"), NOTE, says("user", "on"), NOTE]
    body = responses_body(ModelCall(model="m", items=talk), Upstream(preset, "m"))
    shown = [item.get("role") or item["type"] for item in body["input"]]
    assert shown == ["user", "function_call", "function_call_output", "assistant", "user"]
    assert json.dumps(body["input"]).count("Note.") == 3
    assert "is_note" not in json.dumps(body["input"])


def test_images_of_a_tool_are_shown_in_the_users_next_message() -> None:
    shown = messages([call("1"), output("1", [IMAGE]), says("user", "and now?")])
    assert [message["role"] for message in shown] == ["assistant", "tool", "user"]
    assert shown[-1]["content"] == [CHAT_IMAGE, {"type": "text", "text": "and now?"}]


# -- facts of presets -------------------------------------------------------------------
def test_mistral_gets_an_assistant_message_between_a_tools_and_the_users() -> None:
    talk = [call("1"), output("1"), says("user", "on")]
    assert roles(talk) == ["assistant", "tool", "user"]
    assert roles(talk, "mistral") == ["assistant", "tool", "assistant", "user"]
    assert messages(talk, "mistral")[2]["content"] == BRIDGE


def test_mistral_gets_ids_of_its_own_kind_in_calls_and_results() -> None:
    talk = [call("call_1"), call("abcDEF123"), output("call_1"), output("abcDEF123")]
    shown = messages(talk, "mistral")
    ids = [made["id"] for made in shown[0]["tool_calls"]]
    assert ids == [message["tool_call_id"] for message in shown[1:]]
    assert all(re.fullmatch(r"[A-Za-z0-9]{9}", call_id) for call_id in ids)
    assert ids[1] == "abcDEF123"
    assert messages([*talk, says("user", "on")], "mistral")[0]["tool_calls"][0]["id"] == ids[0]


LONG = "calculate the sum of all the numbers in the file " * 3


@pytest.mark.parametrize(("preset", "limit"), [("openai", 40), ("azure", 40), ("custom", 64)])
def test_a_chat_upstream_gets_no_id_or_name_that_is_too_long_for_it(preset: str, limit: int) -> None:
    long_ids = ["x" * (limit + 1), "x" * 200]
    fitting = "y" * limit
    talk = [call(call_id) | {"name": LONG} for call_id in (*long_ids, fitting)]
    shown = messages([*talk, *(output(call_id) for call_id in (*long_ids, fitting))], preset)
    ids = [made["id"] for made in shown[0]["tool_calls"]]
    assert ids == [message["tool_call_id"] for message in shown[1:]]
    assert ids[2] == fitting
    assert len(set(ids)) == 3
    assert max(map(len, ids)) == limit
    assert {len(made["function"]["name"]) for made in shown[0]["tool_calls"]} == {64}


def test_an_upstream_of_responses_gets_no_id_or_name_that_is_too_long_for_it() -> None:
    talk = [call("x" * 65), call("y" * 64), output("x" * 65), output("y" * 64)]
    talk[0]["name"], talk[1]["name"] = LONG, LONG + "!"
    sent = responses_body(ModelCall(model="m", items=talk), Upstream("openai", "m"))["input"]
    assert [item["call_id"] for item in sent[:2]] == [item["call_id"] for item in sent[2:]]
    assert len(sent[0]["call_id"]) <= 64
    assert sent[1]["call_id"] == "y" * 64
    names = {item["name"] for item in sent[:2]}
    assert [len(name) for name in names] == [64, 64]


@pytest.mark.parametrize("preset", PRESETS)
def test_ids_that_are_made_match_the_pattern_of_every_preset(preset: str) -> None:
    pattern = PRESETS[preset].call_id_pattern
    for number in range(50):
        made = messages([call(f"call_{number}"), output(f"call_{number}")], preset)
        assert re.fullmatch(pattern, made[0]["tool_calls"][0]["id"])


@pytest.mark.parametrize("preset", PRESETS)
def test_a_call_without_text_has_the_content_that_the_server_takes(preset: str) -> None:
    expected = "" if preset == "llama-cpp-python" else None
    assert messages([call("1"), output("1")], preset)[0]["content"] == expected


# -- every conversation -----------------------------------------------------------------
IDS = st.sampled_from(["call_1", "call_2", "abcDEF123", "call_4"])
TEXTS = st.sampled_from(["", "a", "b"])
PARTS = st.lists(st.sampled_from([{"type": "input_text", "text": "t"}, IMAGE]), min_size=1, max_size=2)
ITEMS = st.one_of(
    st.builds(says, st.sampled_from(["user", "system", "developer"]), st.one_of(TEXTS, PARTS)),
    st.builds(says, st.just("assistant"), TEXTS, status=st.sampled_from(["completed", "incomplete"])),
    st.builds(lambda call_id, status: {**call(call_id), "status": status}, IDS, st.sampled_from(["incomplete", "x"])),
    st.builds(output, IDS, st.one_of(TEXTS, PARTS)),
    st.just({"type": "reasoning", "summary": []}),
    st.just(NOTE),
)


def check_order(shown: list[dict[str, Any]], preset: str) -> None:
    expected: list[str] = []  # the ids of the results that must come next
    before = ""
    for position, message in enumerate(shown):
        role = message["role"]
        assert role != "system" or position == 0
        assert role != before or role == "tool", "a role follows itself"
        assert not (preset == "mistral" and (before, role) == ("tool", "user"))
        if expected:
            assert (role, message["tool_call_id"]) == ("tool", expected.pop(0)), "not right behind its call"
        else:
            assert role != "tool", "a result without a call"
            expected = [made["id"] for made in message.get("tool_calls", ())]
        before = role
    assert not expected, "a call without a result"


@settings(max_examples=150, deadline=None)
@given(st.lists(ITEMS, max_size=12), st.sampled_from(["custom", "mistral", "openai"]))
def test_any_conversation_has_the_order_that_strict_servers_demand(items: list[Item], preset: str) -> None:
    built, notes = build_items(items)
    shown = messages([*built, *notes], preset)
    check_order(shown, preset)
    assert messages([*built, *notes], preset) == shown  # the same request again: prompt caches hold
