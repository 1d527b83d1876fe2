"""Reasoning as clients get it: raw text, or a summary for clients that read nothing else."""

from typing import Any, get_args

import pytest
from openai.types.responses import Response, ResponseReasoningItem, ResponseStreamEvent

from gateway_app.providers.builtin.provider import REASONING
from tests.support.chat_client import complete, scripted, stream_completion
from tests.support.checker import check_log
from tests.support.scripted_requests import call
from tests.support.server import Server, events, frames, script
from tests.support.staff import Operator
from tests.support.stored_rows import session_of, stored_rows
from tests.support.websockets import socket

pytestmark = pytest.mark.any_database

STEPS = ({"think": "one two "}, {"say": "Let me see. "}, call("calculate", expression="6*7"), {"think": "so it is "})
INPUT = script(*STEPS)
AI_SDK = {"User-Agent": "ai/6.0.326 ai-sdk/openai/3.0.139 runtime/node.js/22"}
RAW, SUMMARY = "raw", "summary"
RAW_KINDS = [
    "response.output_item.added",
    "response.content_part.added",
    "response.reasoning_text.delta",
    "response.reasoning_text.delta",
    "response.reasoning_text.done",
    "response.content_part.done",
    "response.output_item.done",
]
SUMMARY_KINDS = [
    "response.output_item.added",
    "response.reasoning_summary_part.added",
    "response.reasoning_summary_text.delta",
    "response.reasoning_summary_text.delta",
    "response.reasoning_summary_text.done",
    "response.reasoning_summary_part.done",
    "response.output_item.done",
]


def stream(server: Server, headers: dict[str, str] | None = None, **fields: Any) -> list[dict[str, Any]]:
    body = {"input": INPUT, "stream": True, **fields}
    with server.http() as client, client.stream("POST", "/v1/responses", json=body, headers=headers) as answer:
        assert answer.status_code == 200, answer.read()
        return events(list(frames(answer)))


def first_item(received: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in received if event.get("output_index") == 0]


def reasoning_of(body: dict[str, Any]) -> list[dict[str, Any]]:
    return [item for item in body["output"] if item["type"] == "reasoning"]


def in_form(item: dict[str, Any], text: str) -> str:
    """The form of a whole item, which has this text."""
    summary = [{"type": "summary_text", "text": text}]
    if item["summary"] == summary and "content" not in item:
        return SUMMARY
    assert (item["summary"], item["content"]) == ([], [{"type": "reasoning_text", "text": text}])
    return RAW


def sdk_type(event: dict[str, Any]) -> Any:
    union = get_args(ResponseStreamEvent)[0]
    [found] = [one for one in get_args(union) if event["type"] in get_args(one.model_fields["type"].annotation)]
    return found


# -- raw --------------------------------------------------------------------------------
def test_raw_reasoning_has_the_events_and_items_of_the_sdk(server: Server) -> None:
    received = stream(server)
    assert [event["type"] for event in first_item(received)] == RAW_KINDS
    for event in received:
        read = sdk_type(event).model_validate(event, strict=True)
        if "reasoning" in event["type"] or event.get("part", {}).get("type") == "reasoning_text":
            assert not read.model_extra
            assert not getattr(getattr(read, "part", None), "model_extra", None)
    body = received[-1]["response"]
    Response.model_validate(body, strict=True)
    for item, text in zip(reasoning_of(body), ("one two ", "so it is "), strict=True):
        assert not ResponseReasoningItem.model_validate(item, strict=True).model_extra
        assert in_form(item, text) == RAW
    check_log(server, body["id"])


def test_the_stream_helper_of_the_sdk_accumulates_it(server: Server) -> None:
    with server.openai().responses.stream(model="hermes-agent", input=INPUT) as helper:
        deltas = [event.delta for event in helper if event.type == "response.reasoning_text.delta"]
        final = helper.get_final_response()
    assert deltas == ["one ", "two ", "so ", "it ", "is "]
    items = [item for item in final.output if isinstance(item, ResponseReasoningItem)]
    assert [item.content[0].text for item in items if item.content] == ["one two ", "so it is "]
    assert not any(item.summary for item in items)
    assert final.output_text == "Let me see. The result is 42."


# -- the form is the client's -----------------------------------------------------------
@pytest.mark.parametrize(
    ("headers", "form"),
    [
        ({}, RAW),
        (AI_SDK, SUMMARY),
        (AI_SDK | {"X-Hermes-Reasoning": "raw"}, RAW),
        ({"X-Hermes-Reasoning": "summary"}, SUMMARY),
    ],
)
def test_the_form_is_fixed_when_the_request_is_admitted(server: Server, headers: dict[str, str], form: str) -> None:
    received = stream(server, headers)
    kinds = RAW_KINDS if form == RAW else SUMMARY_KINDS
    assert [event["type"] for event in first_item(received)] == kinds
    response_id = received[0]["response"]["id"]
    assert in_form(server.body(response_id)["output"][0], "one two ") == form
    # Another client that reads it later gets the same events.
    assert events(server.replay(response_id)) == received
    check_log(server, response_id)


def test_an_unknown_form_is_refused_by_name(server: Server) -> None:
    with server.http() as client:
        for path, body in (("responses", {"input": "x"}), ("runs", {"input": "x"})):
            refused = client.post(f"/v1/{path}", json=body, headers={"X-Hermes-Reasoning": "loud"})
            assert (refused.status_code, refused.json()["error"]["param"]) == (400, "X-Hermes-Reasoning")


def test_a_retried_response_keeps_its_form(server: Server, operator: Operator) -> None:
    failing = script({"think": "one two "}, {"fail": "not now"})
    received = stream(server, {"X-Hermes-Reasoning": "summary"}, input=failing)
    first = received[0]["response"]["id"]
    operator.act("/admin/responses_app/response/", "retry", first)
    session_id = session_of(server, first)
    rows = stored_rows(server, "response", "id", "reasoning_form", order_by="turn", session_id=session_id)
    assert [form for _, form in rows] == [SUMMARY, SUMMARY]
    again = server.ended(rows[1][0])
    assert in_form(again["output"][0], "one two ") == SUMMARY


def test_a_websocket_has_the_form_of_its_client(server: Server) -> None:
    with socket(server) as client:
        assert in_form(client.ask(input=INPUT)["response"]["output"][0], "one two ") == RAW
    with socket(server, **{"X-Hermes-Reasoning": "summary"}) as client:
        assert in_form(client.ask(input=INPUT)["response"]["output"][0], "one two ") == SUMMARY


# -- every reader reads both forms ------------------------------------------------------
@pytest.mark.parametrize("form", [RAW, SUMMARY])
def test_chat_has_both_forms_under_both_names(server: Server, form: str) -> None:
    headers = {"X-Hermes-Reasoning": form}
    streamed = stream_completion(server, scripted(*STEPS), headers=headers)
    message = complete(server, scripted(*STEPS), headers=headers)["choices"][0]["message"]
    for name in ("reasoning_content", "reasoning"):
        assert streamed.joined(name) == "one two so it is "
        assert message[name] == "one two so it is "


@pytest.mark.parametrize("form", [RAW, SUMMARY])
def test_operators_and_the_next_turn_read_both_forms(server: Server, operator: Operator, form: str) -> None:
    asked = f"think about it, {form}"
    received = stream(server, {"X-Hermes-Reasoning": form}, input=asked)
    first = received[-1]["response"]
    assert in_form(first["output"][0], REASONING) == form
    page = operator.page(f"/admin/responses_app/response/{first['id']}/change/")
    assert REASONING.strip() in page
    history = [{"role": "user", "content": asked}, *first["output"], {"role": "user", "content": "go on"}]
    with server.http() as client:
        answer = client.post("/v1/responses", json={"input": history})
    assert answer.status_code == 200, answer.text
    assert answer.json()["status"] == "completed"
    [row] = stored_rows(server, "response", "is_history_resent", "previous_id", id=answer.json()["id"])
    assert row == (True, first["id"])
