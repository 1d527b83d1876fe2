"""Every shape of input that real clients send reaches the model, or is answered by name."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.server import Server, script, text
from tests.support.stored_rows import stored_rows

pytestmark = pytest.mark.any_database

PIXEL = "data:image/png;base64,iVBORw0KGgo="


def create(server: Server, items: Any, **fields: Any) -> dict[str, Any]:
    with server.http() as client:
        answer = client.post("/v1/responses", json={"input": items, **fields})
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def stored_input(server: Server, response_id: str) -> list[dict[str, Any]]:
    return [
        json.loads(item)
        for (item,) in stored_rows(server, "inputitem", "item", order_by="position", response_id=response_id)
    ]


def test_replayed_turns_keep_their_parts_and_phase(server: Server) -> None:
    items = [
        {"role": "user", "content": "shapes-one"},
        {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "phase": "commentary",
         "content": [{"type": "output_text", "text": "before", "annotations": [], "logprobs": []}]},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "abc"},
        {"role": "user", "content": [{"type": "input_text", "text": "shapes-two"}]},
    ]  # fmt: skip
    body = create(server, items)
    kept = stored_input(server, body["id"])
    assert [item["type"] for item in kept] == ["message", "message", "message", "reasoning", "message"]
    assert kept[1]["phase"] == "commentary"
    assert kept[3]["encrypted_content"] == "abc"
    assert all(item["id"] != "msg_1" for item in kept)
    assert server.model_calls("shapes-two")[0]["texts"] == ["shapes-one", "before", "", "shapes-two"]


def test_calls_and_their_outputs_reach_the_model_as_string_or_parts(server: Server) -> None:
    for number, output in enumerate(("plain", [{"type": "input_text", "text": "plain"}])):
        call_id = f"call_{number}"
        items = [
            {"role": "user", "content": f"calls-{number}"},
            {"type": "function_call", "id": "fc_x", "call_id": call_id, "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "id": "own", "call_id": call_id, "output": output},
        ]  # fmt: skip
        assert text(create(server, items)) == "The result is plain."


def test_images_are_passed_on_and_never_fetched(server: Server) -> None:
    for url in (PIXEL, "https://example.invalid/cat.png"):
        part = {"type": "input_image", "image_url": url, "detail": "low"}
        body = create(server, [{"role": "user", "content": [{"type": "input_text", "text": "look"}, part]}])
        assert stored_input(server, body["id"])[0]["content"][1] == part


def test_references_resolve_to_input_and_output_of_earlier_responses(server: Server) -> None:
    first = create(server, "reference-me")
    [asked] = stored_input(server, first["id"])
    reply = first["output"][0]["id"]
    items = [{"type": "item_reference", "id": asked["id"]}, {"id": reply}, {"role": "user", "content": "refer-now"}]
    create(server, items)
    seen = server.model_calls("refer-now")[0]["texts"]
    assert seen[0] == "reference-me"
    assert seen[1] == text(first)


@pytest.mark.parametrize("missing", ["msg_" + "0" * 32 + "o0000", "msg_" + "0" * 32 + "i0000", "rs_elsewhere", "x"])
def test_a_reference_to_nothing_is_a_404_that_names_it(server: Server, missing: str) -> None:
    items = [{"role": "user", "content": "x"}, {"type": "item_reference", "id": missing}]
    with server.http() as client:
        answer = client.post("/v1/responses", json={"input": items})
    assert answer.status_code == 404
    assert answer.json()["error"]["param"] == "input[1].id"
    assert answer.json()["error"]["code"] == "item_not_found"


def test_a_foreign_item_does_not_exist(server: Server, other_tenant: str) -> None:
    mine = create(server, "private")["output"][0]["id"]
    with server.http(other_tenant) as client:
        answer = client.post("/v1/responses", json={"input": [{"type": "item_reference", "id": mine}]})
    assert answer.status_code == 404


def test_what_only_other_upstreams_understand_is_kept_and_named(server: Server) -> None:
    items = [{"type": "web_search_call", "id": "ws_1", "status": "completed"}, {"role": "user", "content": "hi"}]
    tools = [{"type": "web_search"}, {"type": "namespace", "name": "multi"}, {"type": "function", "name": "f"}]
    with server.http() as client:
        answer = client.post("/v1/responses", json={"input": items, "tools": tools, "client_metadata": {"a": "b"}})
    assert answer.status_code == 200
    ignored = answer.headers["x-hermes-ignored"]
    assert ignored == "client_metadata, tools[0] (web_search), tools[1] (namespace), input[0] (web_search_call)"
    assert [item["type"] for item in stored_input(server, answer.json()["id"])] == ["web_search_call", "message"]


def test_reasoning_that_led_to_nothing_is_kept_and_named(server: Server) -> None:
    def thought(text: str) -> dict[str, Any]:
        return {"type": "reasoning", "summary": [{"type": "summary_text", "text": text}], "encrypted_content": text}

    answered = {"role": "assistant", "content": "yes"}
    asked = {"role": "user", "content": "what is reasoning for?"}
    items = [asked, thought("used"), answered, thought("idle"), asked, thought("last")]
    with server.http() as client:
        answer = client.post("/v1/responses", json={"input": items})
    assert answer.status_code == 200
    assert answer.headers["x-hermes-ignored"] == "input[3] (reasoning), input[5] (reasoning)"
    assert [item["type"] for item in stored_input(server, answer.json()["id"])].count("reasoning") == 3


def test_reasoning_alone_is_no_history(make_server: Callable[..., Server]) -> None:
    """A turn that has not ended has no hash, and reasoning alone has none: the two must not match."""
    server = make_server()
    running = server.openai().responses.create(input=script({"gate": "never"}), background=True).id
    thought = {"type": "reasoning", "summary": [], "encrypted_content": "sealed"}
    with server.http() as client:
        answer = client.post("/v1/responses", json={"input": [thought, {"role": "user", "content": "hi"}]})
    assert answer.json()["status"] == "completed"
    assert [item["type"] for item in stored_input(server, answer.json()["id"])] == ["reasoning", "message"]
    server.openai().responses.cancel(running)


def with_part(**part: Any) -> dict[str, Any]:
    return {"role": "user", "content": [part]}


@pytest.mark.parametrize("item_id", [None, 5, "x" * 100, "msg_1"])
def test_a_kept_item_gets_our_id_whatever_the_client_calls_it(server: Server, item_id: Any) -> None:
    items = [{"type": "web_search_call", "id": item_id}, {"role": "user", "content": "hi"}]
    body = create(server, items, conversation=f"kept-{item_id}"[:60])
    assert body["status"] == "completed"
    assert stored_input(server, body["id"])[0]["id"].startswith("item_")


BAD_ITEMS: list[tuple[dict[str, Any], str]] = [
    ({"type": "function_call", "name": "f", "arguments": "{}"}, "input[0].call_id"),
    ({"type": "function_call", "call_id": "c", "arguments": "{}"}, "input[0].name"),
    ({"type": "function_call", "call_id": "c", "name": "f", "arguments": {}}, "input[0].arguments"),
    ({"type": "function_call_output", "call_id": "c"}, "input[0].output"),
    ({"type": "function_call_output", "call_id": "unknown", "output": "x"}, "input[0].call_id"),
    ({"type": "reasoning", "summary": "text"}, "input[0].summary"),
    ({"type": 5}, "input[0].type"),
    ({"role": "user", "content": "x", "phase": 1}, "input[0].phase"),
    (with_part(type="input_file", file_id="f"), "input[0].content[0].file_id"),
    (with_part(type="input_audio", data="x"), "input[0].content[0].type"),
    (with_part(type="input_image", file_id="f"), "input[0].content[0].image_url"),
    (with_part(type="input_image", image_url="file:///etc"), "input[0].content[0].image_url"),
    (with_part(type="input_image", image_url=PIXEL, detail=1), "input[0].content[0].detail"),
]


@pytest.mark.parametrize(("item", "param"), BAD_ITEMS, ids=range(len(BAD_ITEMS)))
def test_a_bad_item_is_a_400_that_names_its_place(server: Server, item: dict[str, Any], param: str) -> None:
    with server.http() as client:
        answer = client.post("/v1/responses", json={"input": [item]})
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["param"] == param
