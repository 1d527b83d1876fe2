"""The openai SDK for Node and the AI SDK against a real server."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway_app.providers.builtin.provider import REASONING
from tests.support.chat_client import WEATHER
from tests.support.long_conversations import SUMMARY
from tests.support.node_packages import INSTALL_SECS, needs_node
from tests.support.scripted_requests import REASONING_TEXT_AND_CALL
from tests.support.server import Server, script, text

RUN_SECS = 60

pytestmark = [
    pytest.mark.any_database,
    needs_node,
    pytest.mark.usefixtures("node_client"),  # before any server is started
    pytest.mark.timeout(INSTALL_SECS + RUN_SECS),  # the first test also installs
]

Run = Callable[..., Any]


class Programs:
    """Each program is started once, and runs a scenario for each line that it reads."""

    def __init__(self, folder: Path, server: Server) -> None:
        self._folder = folder
        self._arguments = [f"{server.url}/v1", server.key]
        self._running: dict[str, subprocess.Popen[str]] = {}

    def run(self, scenario: str, *args: str, program: str = "client.mjs") -> Any:
        """What the scenario saw; its own exception ends the program."""
        running = self._running.get(program)
        if running is None or running.poll() is not None:
            running = self._running[program] = self._start(program)
        assert running.stdin is not None
        assert running.stdout is not None
        print(json.dumps([scenario, *args]), file=running.stdin, flush=True)
        line = running.stdout.readline()
        assert line, (self._folder / f"{program}.err").read_text()
        return json.loads(line)

    def _start(self, program: str) -> subprocess.Popen[str]:
        with (self._folder / f"{program}.err").open("w") as errors:
            return subprocess.Popen(
                ["node", program, *self._arguments],
                cwd=self._folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )

    def close(self) -> None:
        for running in self._running.values():
            with running:  # closes its pipes
                running.kill()


@pytest.fixture(scope="module")
def programs(node_client: Path, server: Server) -> Iterator[Programs]:
    found = Programs(node_client, server)
    yield found
    found.close()


@pytest.fixture
def run(programs: Programs) -> Run:
    return programs.run


@pytest.mark.parametrize(
    ("asked", "items"),
    [
        pytest.param("hello", ["message"], id="text"),
        pytest.param(script({"think": "one two "}, {"say": "three"}), ["reasoning", "message"], id="reasoning"),
        pytest.param(
            REASONING_TEXT_AND_CALL,
            ["reasoning", "message", "mcp_call", "message"],
            id="server-tool",
        ),
    ],
)
def test_the_strict_helper_accepts_the_stream(server: Server, run: Run, asked: str, items: list[str]) -> None:
    seen = run("stream", asked)
    assert seen["status"] == "completed"
    assert seen["items"] == items
    assert seen["numbers"] == list(range(len(seen["numbers"])))
    assert seen["text"] == text(server.body(seen["id"])) != ""


def test_a_cut_stream_is_resumed_without_a_gap(server: Server, run: Run) -> None:
    rest = {"say": "five six seven eight nine ten eleven twelve", "pace": 8}  # still running when the resume begins
    cut = run("cut", script({"say": "one two three four "}, {"gate": "node-cut"}, rest), "6")
    assert cut["aborted"] is True
    assert cut["numbers"] == list(range(6))
    assert server.body(cut["id"])["status"] == "in_progress"
    server.open_gate("node-cut")
    resumed = run("resume", cut["id"], str(cut["numbers"][-1]))
    assert resumed["numbers"] == resumed["helperNumbers"]
    whole = cut["numbers"] + resumed["numbers"]
    assert whole == list(range(len(server.replay(cut["id"])) - 1))  # the last frame is [DONE]
    assert resumed["status"] == "completed"
    assert resumed["text"] == text(server.body(cut["id"]))
    assert resumed["text"] == "one two three four five six seven eight nine ten eleven twelve"


def test_plain_responses_chain_by_previous_response_id(server: Server, run: Run) -> None:
    first_asked, second_asked = script({"say": "node answer one"}), script({"say": "node answer two"})
    first, second = run("chain", first_asked, second_asked)
    assert [first["text"], second["text"]] == ["node answer one", "node answer two"]
    assert [first["previous"], second["previous"]] == [None, first["id"]]
    for link in (first, second):
        assert link["status"] == "completed"
        assert link["text"] == text(server.body(link["id"]))
    last_call = server.model_calls(second_asked)[-1]
    assert last_call["texts"] == [first_asked, "node answer one", second_asked]


def test_an_unknown_id_is_a_not_found_error_with_code_and_request_id(run: Run) -> None:
    refusals = run("missing", "resp_unknown")
    assert set(refusals) == {"retrieve", "replay", "helper", "delete"}
    for refusal in refusals.values():
        assert refusal["isNotFound"] is True
        assert refusal["status"] == 404
        assert refusal["code"] == "response_not_found"
        assert refusal["requestId"].startswith("req_")


def test_the_ai_sdk_streams_with_usage(run: Run) -> None:
    seen = run("stream", program="ai.mjs")
    assert "ai sdk says hello" in seen["text"]
    assert seen["finish"] == "stop"
    assert seen["tokens"] > 0


def test_the_ai_sdk_reads_raw_reasoning_as_a_summary(run: Run) -> None:
    assert run("reasoning", program="ai.mjs") == [REASONING, REASONING]


def test_the_ai_sdk_runs_its_own_tools(run: Run) -> None:
    assert run("tools", program="ai.mjs") == {"text": "The result is windy in sample.", "steps": 2}


def test_the_ai_sdk_replays_its_turns_by_reference(server: Server, run: Run) -> None:
    seen = run("turns", program="ai.mjs")
    assert 'first: "ai sdk turn one"' in seen["second"]
    assert server.model_calls("ai sdk turn two")[0]["texts"][1] == seen["first"]


def test_the_ai_sdk_goes_on_over_a_compaction(server: Server, run: Run) -> None:
    seen = run("compaction", program="ai.mjs")
    assert "error" not in seen["parts"]
    assert "ai sdk comes back" in seen["text"]
    shown = server.model_calls("ai sdk comes back")[-1]["texts"]
    assert any(entry.startswith(SUMMARY) for entry in shown)


def test_the_chat_helper_accepts_text_calls_and_tools_of_the_server(run: Run) -> None:
    seen = run("chat", "calculate 6*7")
    assert (seen["text"], seen["finish_reason"]) == ("Let me see. The result is 42.", "stop")
    assert seen["usage"]["total_tokens"] > 0
    called = run("chat", "What is the weather?", json.dumps([WEATHER]))
    assert called["finish_reason"] == "tool_calls"
    assert called["calls"][0]["function"] == {"name": "get_weather", "arguments": '{"city":"sample"}'}


def test_the_ai_sdk_chats_beside_tools_of_the_server(run: Run) -> None:
    seen = run("chat", program="ai.mjs")
    assert seen["text"] == "Let me see. The result is 42."
    assert "error" not in seen["parts"]
    assert seen["tokens"] > 0
    assert seen["answered"] == "The result is windy in sample."


def test_the_ai_sdk_goes_on_after_a_call_of_the_server(server: Server, run: Run) -> None:
    asked = script({"call": "effect", "arguments": {"text": "ai tool"}})
    seen = run("serverTool", asked, script({"say": "ai next"}), program="ai.mjs")
    assert seen == {"first": "The result is ai tool.", "second": "ai next"}
    assert "ai tool" in server.model_calls('"ai next"')[0]["texts"]
