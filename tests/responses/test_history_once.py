"""History is stored once, whether a client names its last turn or sends everything again."""

import json
from typing import Any

from tests.support.server import Server, text
from tests.support.stored_history import TURNS, assert_turns_cost_the_same
from tests.support.stored_rows import input_items, session_of, stored_rows


def post(server: Server, client: Any, **body: Any) -> dict[str, Any]:
    answer = client.post("/v1/responses", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_a_long_chain_costs_the_same_on_every_turn(server: Server) -> None:
    ids: list[str] = []
    with server.http() as client:
        for number in range(TURNS):
            chained = {"previous_response_id": ids[-1]} if ids else {}
            ids.append(post(server, client, input=f"write 9 words {number:03}", **chained)["id"])
    assert_turns_cost_the_same(server, ids)
    calls = server.model_calls(f"write 9 words {TURNS - 1:03}")
    assert len(calls[0]["texts"]) == 2 * TURNS - 1


def test_a_long_chat_that_resends_its_history_costs_the_same_on_every_turn(server: Server) -> None:
    history: list[dict[str, Any]] = [{"role": "system", "content": "resent"}]
    ids: list[str] = []
    with server.http() as client:
        for number in range(TURNS):
            history.append({"role": "user", "content": f"write 8 words {number:03}"})
            body = post(server, client, input=history)
            history.append({"role": "assistant", "content": text(body)})
            ids.append(body["id"])
    assert_turns_cost_the_same(server, ids)
    assert len({session_of(server, one) for one in ids}) == 1
    seen = server.model_calls(f"write 8 words {TURNS - 1:03}")[0]["texts"]
    assert seen == [item["content"] for item in history[:-1]]


def test_a_chat_that_repeats_only_the_messages_is_recognised_over_tools(server: Server) -> None:
    history: list[dict[str, Any]] = []
    ids: list[str] = []
    with server.http() as client:
        for number in range(6):
            history.append({"role": "user", "content": f"think and calculate {number} + 1"})
            body = post(server, client, input=history)
            history.append({"role": "assistant", "content": text(body)})
            ids.append(body["id"])
    assert [len(_new_items(server, response_id)) for response_id in ids] == [1] * 6
    sessions = {stored_rows(server, "response", "session_id", id=one)[0] for one in ids}
    assert len(sessions) == 1


def test_output_items_sent_back_as_they_came_are_recognised(server: Server) -> None:
    with server.http() as client:
        first = post(server, client, input="think and calculate 3*4")
        history = [{"role": "user", "content": "think and calculate 3*4"}, *first["output"]]
        second = post(server, client, input=[*history, {"role": "user", "content": "again"}])
    assert _new_items(server, second["id"]) == ["again"]


def test_input_items_show_what_the_client_sent_all_the_same(server: Server) -> None:
    history: list[dict[str, Any]] = [{"role": "user", "content": "shown one"}]
    with server.http() as client:
        first = post(server, client, input=history)
        history += [{"role": "assistant", "content": text(first)}, {"role": "user", "content": "shown two"}]
        second = post(server, client, input=history)
    items = list(server.openai().responses.input_items.list(second["id"], order="asc", limit=1))
    shown = [item.to_dict()["content"][0]["text"] for item in items]  # type: ignore[index]
    assert shown == [item["content"] for item in history]


def test_an_edited_history_is_a_conversation_of_its_own(server: Server) -> None:
    with server.http() as client:
        first = post(server, client, input="original question")
        edited = [{"role": "user", "content": "edited question"}, {"role": "assistant", "content": text(first)}]
        second = post(server, client, input=[*edited, {"role": "user", "content": "next"}])
    assert len(_new_items(server, second["id"])) == 3


def test_strangers_never_share_a_history(server: Server, other_tenant: str) -> None:
    with server.http() as client:
        first = post(server, client, input="shared opening words")
    with server.http(other_tenant) as client:
        repeated = [{"role": "user", "content": "shared opening words"}, {"role": "assistant", "content": text(first)}]
        second = post(server, client, input=[*repeated, {"role": "user", "content": "next"}])
    assert len(_new_items(server, second["id"])) == 3


def test_a_deleted_turn_is_stored_anew_when_it_is_sent_again(server: Server) -> None:
    with server.http() as client:
        first = post(server, client, input="soon deleted")
        client.delete(f"/v1/responses/{first['id']}")
        history = [{"role": "user", "content": "soon deleted"}, {"role": "assistant", "content": text(first)}]
        second = post(server, client, input=[*history, {"role": "user", "content": "next"}])
    assert len(_new_items(server, second["id"])) == 3
    assert len(server.model_calls("soon deleted")[-1]["texts"]) == 3


def test_a_deleted_turn_further_back_is_stored_anew_too(server: Server) -> None:
    history: list[dict[str, Any]] = []
    ids: list[str] = []
    with server.http() as client:
        for reply in ("far one", "far two", "far three"):
            history.append({"role": "user", "content": reply})
            body = post(server, client, input=history)
            history.append({"role": "assistant", "content": text(body)})
            ids.append(body["id"])
        client.delete(f"/v1/responses/{ids[0]}")
        post(server, client, input=[*history, {"role": "user", "content": "far four"}])
    assert server.model_calls("far four")[0]["texts"] == [item["content"] for item in history] + ["far four"]


def test_instructions_are_not_inherited_by_a_turn_that_brings_its_history(server: Server) -> None:
    with server.http() as client:
        first = post(server, client, input="inform me", instructions="Be secretive.")
        history = [{"role": "user", "content": "inform me"}, {"role": "assistant", "content": text(first)}]
        second = post(server, client, input=[*history, {"role": "user", "content": "and?"}])
    assert "My instructions" not in text(second)
    assert server.model_calls("and?")[0]["instructions"] == ""


def test_a_branch_of_a_named_session_leaves_the_session_alone(server: Server) -> None:
    client = server.openai()
    header = {"X-Hermes-Session-Id": "branched"}
    first = client.responses.create(model="hermes-agent", input="trunk one", extra_headers=header)
    client.responses.create(model="hermes-agent", input="trunk two", extra_headers=header)
    history = [{"role": "user", "content": "trunk one"}, {"role": "assistant", "content": first.output_text}]
    with server.http() as raw:
        branch = raw.post("/v1/responses", json={"input": [*history, {"role": "user", "content": "branch"}]})
    assert branch.headers["x-hermes-session-id"] != "branched"
    assert _new_items(server, branch.json()["id"]) == ["branch"]
    client.responses.create(model="hermes-agent", input="trunk three", extra_headers=header)
    seen = server.model_calls("trunk three")[0]["texts"]
    assert [reply for reply in seen if reply.startswith(("trunk", "branch"))] == [
        "trunk one",
        "trunk two",
        "trunk three",
    ]


def test_what_only_looks_alike_is_not_taken_for_the_same(server: Server) -> None:
    url = "https://example.invalid/a.png"
    parts = ({"type": "input_text", "text": url}, {"type": "input_image", "image_url": url})
    with server.http() as client:
        first = post(server, client, input=[{"role": "user", "content": [parts[0]]}])
        repeated = [{"role": "user", "content": [parts[1]]}, {"role": "assistant", "content": text(first)}]
        second = post(server, client, input=[*repeated, {"role": "user", "content": "which?"}])
        patch = {"type": "custom_tool_call", "call_id": "c", "name": "p", "input": "one"}
        done = {"type": "custom_tool_call_output", "call_id": "c", "output": "done"}
        turn = [{"role": "user", "content": "patch it"}, patch, done]
        third = post(server, client, input=turn)
        other = [turn[0], {**patch, "input": "two"}, done, {"role": "assistant", "content": text(third)}]
        fourth = post(server, client, input=[*other, {"role": "user", "content": "done?"}])
    for body, count in ((second, 3), (fourth, 5)):
        assert input_items(server, body["id"]) == count


def test_a_turn_behind_a_conversation_is_not_recognised_from_its_end(server: Server) -> None:
    client = server.openai()
    client.responses.create(model="hermes-agent", input="hidden turn", conversation="hashless")
    last = client.responses.create(model="hermes-agent", input="open turn", conversation="hashless")
    chained = client.responses.create(model="hermes-agent", input="chained turn", previous_response_id=last.id)
    assert "hidden turn" in server.model_calls("chained turn")[0]["texts"]
    history = [{"role": "user", "content": "chained turn"}, {"role": "assistant", "content": chained.output_text}]
    with server.http() as raw:
        post(server, raw, input=[*history, {"role": "user", "content": "fresh turn"}])
    assert len(server.model_calls("fresh turn")[0]["texts"]) == 3


def _new_items(server: Server, response_id: str) -> list[str]:
    found = stored_rows(server, "inputitem", "item", order_by="position", response_id=response_id)
    return [json.loads(item)["content"][0]["text"] for (item,) in found]
