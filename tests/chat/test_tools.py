"""Tools over Chat Completions: the client's as calls, the server's as frames beside the text."""

import json
from typing import Any

import pytest
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

from tests.support.chat_client import (
    WEATHER,
    StreamedCompletion,
    complete,
    post,
    response_id,
    scripted,
    stream_completion,
    streamed,
    user,
)
from tests.support.hermes_client import post as post_to
from tests.support.server import Server, eventually
from tests.support.stored_rows import count_rows

pytestmark = pytest.mark.any_database

QUESTION = user("What is the weather in Paris?")


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"call": name, "arguments": arguments}


def answered(made: dict[str, Any], output: str) -> list[dict[str, Any]]:
    """The turn that answers every call of a completion."""
    message = made["choices"][0]["message"]
    outputs = [{"role": "tool", "tool_call_id": one["id"], "content": output} for one in message["tool_calls"]]
    return [message, *outputs]


# -- tools of the client ----------------------------------------------------------------
def test_a_call_ends_the_completion(server: Server) -> None:
    made = complete(server, [QUESTION], tools=[WEATHER])
    [choice] = made["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] is None
    [called] = choice["message"]["tool_calls"]
    assert (called["type"], called["function"]) == (
        "function",
        {"name": "get_weather", "arguments": '{"city":"sample"}'},
    )
    over_responses = server.body(response_id(made["id"]))["output"]
    assert [item["call_id"] for item in over_responses] == [called["id"]]


def test_a_streamed_call_names_itself_first_and_then_comes_in_pieces(server: Server) -> None:
    completion = stream_completion(server, [QUESTION], tools=[WEATHER])
    pieces = [delta["tool_calls"][0] for delta in completion.deltas if "tool_calls" in delta]
    assert completion.reasons == ["tool_calls"]
    assert pieces[0]["function"] == {"name": "get_weather", "arguments": ""}
    assert (pieces[0]["index"], pieces[0]["type"]) == (0, "function")
    assert all(set(piece) == {"index", "function"} for piece in pieces[1:])
    assert "".join(piece["function"]["arguments"] for piece in pieces) == '{"city":"sample"}'
    assert completion.progress == []


def test_parallel_calls_go_round(server: Server) -> None:
    both = scripted(call("get_weather", city="Paris"), call("get_weather", city="Rome"))
    completion = stream_completion(server, both, tools=[WEATHER])
    pieces = [delta["tool_calls"][0] for delta in completion.deltas if "tool_calls" in delta]
    assert [piece["index"] for piece in pieces if "id" in piece] == [0, 1]
    made = complete(server, both, tools=[WEATHER])
    cities = [json.loads(one["function"]["arguments"])["city"] for one in made["choices"][0]["message"]["tool_calls"]]
    assert cities == ["Paris", "Rome"]
    final = complete(server, [*both, *answered(made, "warm")], tools=[WEATHER])
    assert final["choices"][0]["message"]["content"] == "The result is warm."
    new = count_rows(server, "inputitem", response_id=response_id(final["id"]))
    assert new == 2, "the question and the calls are known already"


def test_custom_tools_go_round(server: Server) -> None:
    patch: Any = {"type": "custom", "custom": {"name": "patch_it", "format": {"type": "text"}}}
    asked = scripted(call("patch_it", input="*** text"))
    made = complete(server, asked, tools=[patch])
    [called] = made["choices"][0]["message"]["tool_calls"]
    assert (called["type"], called["custom"]) == ("custom", {"name": "patch_it", "input": "*** text"})
    final = complete(server, [*asked, *answered(made, "done")], tools=[patch])
    assert final["choices"][0]["message"]["content"] == "The result is done."


@pytest.mark.parametrize(
    ("choice", "is_called"),
    [
        ("none", False),
        ("required", True),
        ({"type": "function", "function": {"name": "get_weather"}}, True),
        (
            {
                "type": "allowed_tools",
                "allowed_tools": {
                    "mode": "required",
                    "tools": [{"type": "function", "function": {"name": "get_weather"}}],
                },
            },
            True,
        ),
    ],
    ids=range(4),
)
def test_a_tool_choice_forces_or_forbids(server: Server, choice: Any, is_called: bool) -> None:
    made = complete(server, [user("hello")], tools=[WEATHER], tool_choice=choice)
    assert ("tool_calls" in made["choices"][0]["message"]) is is_called


def test_the_sdks_stream_helper_assembles_calls(server: Server) -> None:
    client = server.openai()
    with client.chat.completions.stream(model="hermes-agent", messages=[QUESTION], tools=[WEATHER]) as stream:  # type: ignore[list-item]
        kinds = [event.type for event in stream]
        final = stream.get_final_completion()
    assert "tool_calls.function.arguments.delta" in kinds
    assert "tool_calls.function.arguments.done" in kinds
    assert final.choices[0].finish_reason == "tool_calls"
    [called] = final.choices[0].message.tool_calls or []
    assert called.function.arguments == '{"city":"sample"}'


@pytest.mark.filterwarnings("default")
def test_langchain_streams_and_runs_its_tools(server: Server) -> None:
    @tool
    def get_weather(city: str) -> str:
        """The weather in a city."""
        return f"sunny in {city}"

    chat = ChatOpenAI(model="hermes-agent", base_url=f"{server.url}/v1", api_key=server.key, max_retries=0)  # type: ignore[arg-type]
    streamed_text = "".join(str(chunk.text) for chunk in chat.stream("langchain: calculate 20+1"))
    assert streamed_text == "Let me see. The result is 21."
    bound = chat.bind_tools([get_weather])
    called: Any = bound.invoke("What is the weather?")
    final = bound.invoke([("user", "What is the weather?"), called, get_weather.invoke(called.tool_calls[0])])
    assert str(final.text) == "The result is sunny in sample."


# -- tools of the server ----------------------------------------------------------------
def test_a_tool_of_the_server_shows_as_frames_before_the_final_text(server: Server) -> None:
    completion = stream_completion(server, [user("calculate 6*7")])
    running, completed = completion.progress
    assert running["status"] == "running"
    assert (running["tool"], running["emoji"], running["label"]) == ("calculate", "🧮", "6*7")
    assert (completed["tool"], completed["status"]) == ("calculate", "completed")
    assert running["toolCallId"] == completed["toolCallId"]
    assert "input" not in running
    assert "output" not in completed
    assert completion.text_before == ["Let me see. "] * 2
    assert completion.joined("content") == "Let me see. The result is 42."
    assert completion.reasons == ["stop"]
    assert not any("tool_calls" in delta for delta in completion.deltas)
    assert all(frame["choices"] == [] for frame in completion.progress), "for SDKs that take every frame for a chunk"


@pytest.mark.parametrize("form", ["function_call", "mcp_call"])
def test_full_detail_shows_input_and_output(server: Server, form: str) -> None:
    headers = {"X-Hermes-Tool-Detail": "full", "X-Hermes-Tool-Items": form}
    running, completed = stream_completion(server, [user("calculate 6*7")], headers=headers).progress
    assert running["input"] == completed["input"] == {"expression": "6*7"}
    assert completed["output"] == "42"
    bad = post(server, [user("x")], headers={"X-Hermes-Tool-Detail": "loud"})
    assert (bad.status_code, bad.json()["error"]["param"]) == (400, "X-Hermes-Tool-Detail")


def test_full_detail_shows_a_failure_in_the_same_words_in_either_form(server: Server) -> None:
    shown = []
    for form in ("function_call", "mcp_call"):
        headers = {"X-Hermes-Tool-Detail": "full", "X-Hermes-Tool-Items": form}
        shown.append(stream_completion(server, scripted(call("explode")), headers=headers).progress[-1]["output"])
    assert shown == ["Error: the tool exploded"] * 2


def test_a_call_that_waits_for_consent_says_so_and_how_to_decide(server: Server) -> None:
    asked = scripted(call("guarded", command="rm  -r x"))
    usage = {"include_usage": True}
    wait = {"X-Hermes-Approval-Wait": "true"}
    with streamed(server, asked, stream_options=usage, headers=wait) as (answer, received):
        completion = StreamedCompletion(answer.headers)
        for frame in received:
            completion.note(frame)
            if completion.consents and not completion.progress and len(completion.consents) == 1:
                run_id = completion.chunks[0]["id"].replace("chatcmpl-", "run_")
                decided = post_to(server, f"/v1/runs/{run_id}/approval", {"choice": "approve"})
                assert decided.status_code == 200, decided.text
    (_, request), (_, responded) = completion.consents
    assert [name for name, _ in completion.consents] == ["request", "responded"]
    asked_for = request["approval"]
    assert (asked_for["tool"], asked_for["command"]) == ("guarded", "rm -r x")
    assert asked_for["choices"] == ["once", "session", "always", "deny"]
    assert request["toolCallId"] == asked_for["request_id"] == completion.progress[0]["toolCallId"]
    assert (responded["approval"]["choice"], responded["toolCallId"]) == ("once", request["toolCallId"])
    assert [frame["status"] for frame in completion.progress] == ["running", "completed"]
    beside = [request, responded, *completion.progress]
    assert all(frame["choices"] == [] and frame["usage"] is None for frame in beside), "chunks, to SDKs"
    assert [chunk["usage"] is None for chunk in completion.chunks] == [True] * (len(completion.chunks) - 1) + [False]


def test_internal_tools_are_never_shown(server: Server) -> None:
    completion = stream_completion(
        server, scripted(call("_hidden", text="chat-hidden"), call("effect", text="chat-shown"))
    )
    assert [frame["tool"] for frame in completion.progress] == ["effect", "effect"]
    assert "_hidden" not in json.dumps(completion.chunks)


@pytest.mark.parametrize("detail", ["short", "full"])
def test_a_call_that_never_started_never_completes(server: Server, detail: str) -> None:
    """It needs consent, which a completion that is not stored can't wait for."""
    asked = scripted(call("guarded", text="chat-denied"))
    completion = stream_completion(server, asked, store=False, headers={"X-Hermes-Tool-Detail": detail})
    assert completion.progress == []
    assert "Denied" in completion.joined("content")


def test_parallel_calls_each_complete_once_under_their_own_id(server: Server) -> None:
    completion = stream_completion(
        server, scripted(call("effect", text="a"), call("explode"), call("effect", text="b"))
    )
    ids = [frame["toolCallId"] for frame in completion.progress]
    assert len(ids) == 6
    for call_id in set(ids):
        states = [frame["status"] for frame in completion.progress if frame["toolCallId"] == call_id]
        assert states == ["running", "completed"]


def test_progress_arrives_while_the_tool_runs(server: Server) -> None:
    asked = scripted(call("effect", text="chat-live", gate="chat-live"))
    with streamed(server, asked) as (_, received):
        frame = next(frame for frame in received if frame.startswith(b"event: hermes.tool.progress"))
        assert b'"running"' in frame
        server.open_gate("chat-live")
        assert b"data: [DONE]\n\n" in list(received)


def test_a_call_for_the_client_beside_one_for_the_server(server: Server) -> None:
    own: Any = {"type": "mcp", "server_label": "hermes", "allowed_tools": ["effect"]}
    both = scripted(call("effect", text="chat-mixed"), call("get_weather", city="Rome"))
    completion = stream_completion(server, both, tools=[WEATHER, own])
    assert [frame["tool"] for frame in completion.progress] == ["effect", "effect"]
    assert completion.reasons == ["tool_calls"]
    assert eventually(lambda: (server.home / "effects.txt").read_text().splitlines().count("chat-mixed") == 1)
