"""Tools that the server runs: through the ledger, shown to clients, and never a reason to fail."""

from collections.abc import Callable

import pytest

from tests.support.scripted_requests import call, effects, run_script
from tests.support.server import (
    Server,
    eventually,
    script,
    text,
)
from tests.support.stored_rows import stored_rows, tool_calls

pytestmark = pytest.mark.any_database


@pytest.mark.parametrize(
    ("name", "status", "reply"),
    [
        ("explode", "failed", "Error: the tool exploded"),
        ("garbage", "completed", "{'not': 'text', 'nul': '\\x00', 'half': '\\ud800'}"),
        ("forever", "failed", "Error: forever did not end within 0.2 s."),
    ],
)
def test_whatever_a_tool_does_is_a_result_the_model_reads(server: Server, name: str, status: str, reply: str) -> None:
    body = run_script(server, call(name))
    assert body["status"] == "completed"
    assert [item["type"] for item in body["output"]] == ["function_call", "function_call_output", "message"]
    assert body["output"][1]["output"] == reply
    assert text(body) == f"The result is {reply}."
    assert tool_calls(server, body["id"]) == [(name, status, reply)]


def test_a_tool_that_is_not_there_is_a_result_with_those_that_are(server: Server) -> None:
    body = run_script(server, call("missing"))
    reply = body["output"][1]["output"]
    assert reply.startswith("Error: there is no tool named 'missing'. The tools are: ")
    assert {"calculate", "read_file", "effect"} <= set(reply.removesuffix(".").rpartition(": ")[2].split(", "))
    # A name that the model made up is content: the ledger does not have it.
    assert tool_calls(server, body["id"]) == [("unknown", "failed", reply)]


def test_obvious_types_are_fitted_and_others_named(server: Server) -> None:
    body = run_script(server, call("calculate", expression=42))
    assert body["output"][1]["output"] == "42"
    body = run_script(server, call("read_file", path="a.txt", limit="many"))
    assert body["output"][1]["output"] == "Error: the argument 'limit' must be a whole number"
    body = run_script(server, call("write_file", path="a.txt"))
    assert body["output"][1]["output"] == "Error: the argument 'content' is missing"


def test_broken_arguments_are_reported_to_the_model(server: Server) -> None:
    body = run_script(server, {"call": "effect", "arguments": ["not", "an object"]})
    assert "must be one JSON object: they are an array" in body["output"][1]["output"]


def test_a_long_output_is_stored_whole_and_shown_cut(server: Server) -> None:
    body = run_script(server, call("chatty", size=200_000))
    shown = body["output"][1]["output"]
    assert len(shown) < 51_000
    assert "characters are left out" in shown
    [(_, _, stored)] = tool_calls(server, body["id"])
    assert len(stored) == 200_000


def test_what_a_command_says_is_in_the_log_while_it_runs(make_server: Callable[..., Server]) -> None:
    server = make_server(HERMES_TERMINAL="unsandboxed")
    gate = server.home / "gates" / "end"
    command = f"echo early; while [ ! -e {gate} ]; do sleep 0.05; done; echo late"
    with server.http() as client:
        asked = {"input": script(call("terminal", command=command)), "background": True}
        response_id = client.post("/v1/responses", json=asked).json()["id"]
    progress = b'"type":"hermes.tool.progress"'

    def has_printed() -> bool:
        frames = b"".join(
            bytes(row[0]) for row in stored_rows(server, "eventsegment", "frames", response_id=response_id)
        )
        return progress in frames and b"early" in frames.split(progress)[1]

    eventually(has_printed, what="the first words of the command")
    server.open_gate("end")
    assert "early\nlate" in server.ended(response_id)["output"][1]["output"]


def test_calls_can_be_shown_as_mcp_items(server: Server) -> None:
    tools = [{"type": "mcp", "server_label": "hermes", "allowed_tools": ["effect", "explode"]}]
    body = run_script(server, call("effect", text="shown"), call("explode"), tools=tools)
    good, bad, message = body["output"]
    assert (good["type"], good["server_label"], good["name"]) == ("mcp_call", "hermes", "effect")
    assert (good["output"], good["error"], good["status"]) == ("shown", None, "completed")
    assert (bad["output"], bad["status"]) == (None, "failed")
    assert bad["error"]["content"] == [{"type": "text", "text": "Error: the tool exploded"}]
    assert message["type"] == "message"
    again = run_script(server, {"say": "and"}, previous_response_id=body["id"])
    assert "shown" in server.model_calls('{"say": "and"}')[0]["texts"]
    assert again["status"] == "completed"


def test_the_header_chooses_the_form_and_the_events_follow(server: Server) -> None:
    with server.http() as client:
        answer = client.post(
            "/v1/responses",
            json={"input": script(call("effect", text="by header")), "stream": True},
            headers={"X-Hermes-Tool-Items": "mcp_call"},
        )
        assert "function_call" not in answer.text
        for kind in ("in_progress", "completed"):
            assert answer.text.count(f"event: response.mcp_call.{kind}\n") == 1
        assert answer.text.count("event: response.mcp_call_arguments.done\n") == 1
        refused = client.post("/v1/responses", json={"input": "x"}, headers={"X-Hermes-Tool-Items": "table"})
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "X-Hermes-Tool-Items")


def test_an_unknown_mcp_server_is_named(server: Server) -> None:
    with server.http() as client:
        tools = [{"type": "mcp", "server_label": "elsewhere"}]
        refused = client.post("/v1/responses", json={"input": "x", "tools": tools})
        hosted = client.post("/v1/responses", json={"input": "x", "tools": [{**tools[0], "server_url": "https://x"}]})
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "tools[0].server_label")
    assert hosted.headers["X-Hermes-Ignored"] == "tools[0] (mcp)"


def test_internal_tools_run_and_are_recorded_and_never_shown(server: Server) -> None:
    body = run_script(server, {"say": "so "}, call("_hidden", text="behind the curtain"))
    assert [item["type"] for item in body["output"]] == ["message", "message"]
    assert text(body) == "so The result is behind the curtain."
    assert tool_calls(server, body["id"]) == [("_hidden", "completed", "behind the curtain")]
    assert b"_hidden" not in b"".join(server.replay(body["id"]))


def test_only_calls_of_the_servers_tools_count_against_the_limit(server: Server) -> None:
    weather = {"type": "function", "name": "get_weather"}
    body = run_script(server, call("get_weather"), call("get_weather"), tools=[weather], max_tool_calls=1)
    assert body["status"] == "completed"
    body = run_script(server, call("effect", text="over"), call("effect", text="over"), max_tool_calls=1)
    assert body["incomplete_details"] == {"reason": "max_tool_calls"}
    assert [item["output"][:15] for item in body["output"][2:]] == ["Not carried out"] * 2
    assert effects(server, "over") == 0


def test_the_token_limit_is_one_for_all_rounds(server: Server) -> None:
    """The call costs one token, the answer to its result may cost two more."""
    body = run_script(server, call("effect", text="long"), max_output_tokens=3)
    assert (body["status"], body["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
    assert text(body) == "The result "
    assert body["usage"]["output_tokens"] == 3
    body = run_script(server, call("effect", text="long"), max_output_tokens=1)
    assert [item["type"] for item in body["output"]] == ["function_call", "function_call_output"]
    assert body["incomplete_details"] == {"reason": "max_output_tokens"}


def test_a_turn_has_a_time_limit(make_server: Callable[..., Server]) -> None:
    server = make_server(HERMES_TURN_TIMEOUT="1")
    body = run_script(server, {"say": "kept "}, {"gate": "never"})
    assert (body["status"], body["incomplete_details"]) == ("incomplete", {"reason": "time_limit"})
    assert text(body) == "kept "


def test_a_loop_that_never_ends_is_ended_in_words(server: Server) -> None:
    body = run_script(server, call("again"))
    assert (body["status"], body["incomplete_details"]["reason"]) == ("incomplete", "max_iterations")
    assert len(tool_calls(server, body["id"])) == 89
    assert text(body)


def test_the_rounds_of_a_turn_are_limited_by_the_server_and_by_its_profile(make_server: Callable[..., Server]) -> None:
    server = make_server(HERMES_MAX_ITERATIONS="4")
    body = run_script(server, call("again"))
    assert len(tool_calls(server, body["id"])) == 3
    made = "from responses_app.models import Profile; Profile.objects.create(name='hasty', max_iterations=2)"
    server.manage("shell", "-c", made)
    body = run_script(server, call("again"), model="hasty")
    assert len(tool_calls(server, body["id"])) == 1
    assert body["incomplete_details"]["reason"] == "max_iterations"


def test_files_written_in_one_turn_are_there_in_the_next(server: Server) -> None:
    run_script(server, call("write_file", path="notes/a.txt", content="remember me"))
    body = run_script(server, call("read_file", path="notes/a.txt"))
    assert "remember me" in body["output"][1]["output"]


def test_the_terminal_keeps_its_folder_and_its_environment(make_server: Callable[..., Server]) -> None:
    server = make_server(HERMES_TERMINAL="unsandboxed", HERMES_API_KEY="not-for-tools")
    run_script(server, call("terminal", command="mkdir -p deep && cd deep && export COLOUR=blue"))
    body = run_script(server, call("terminal", command="pwd; echo $COLOUR; env"))
    reply = body["output"][1]["output"]
    assert "/deep" in reply
    assert "blue" in reply
    assert "not-for-tools" not in reply
