"""All that goes to the model beside the conversation is counted: before the turn, and in it."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.model_steps import USAGE
from tests.support.model_stub import Call, Calls, Finish, ModelStub, Text
from tests.support.server import Server

pytestmark = pytest.mark.any_database

WINDOW = 8192
UNCOUNTED = dict.fromkeys(USAGE, 0)  # the usage is then what the turn estimates
SEPARATORS = 8  # tokens of the empty lines between the parts of the instructions
NOTE = '{"action": "add", "content": "' + "the user likes tea and long walks " * 14 + '"}'
PLAN = '{"todos": [{"content": "' + "look before you leap " * 20 + '"}]}'
RULES = "Answer in short sentences of plain words. " * 20


class Counting:
    """A server whose model's server counts nothing: what the turn estimates is its usage."""

    def __init__(self, server: Server, stub: ModelStub) -> None:
        self.server = server
        self._stub = stub

    def turn(self, headers: dict[str, str] | None = None, **body: Any) -> dict[str, Any]:
        self._stub.play(Text("done"), Finish(usage=UNCOUNTED))
        answer = self.post("/v1/responses", headers, body)
        return answer

    def noted(self, tool: str, arguments: str, **headers: str) -> None:
        self._stub.play(Calls((Call("call_1", tool, (arguments,)),)), Finish("tool_calls", usage=UNCOUNTED))
        self.turn(headers, input="go")

    def counted(self, headers: dict[str, str] | None = None, **body: Any) -> int:
        tokens: int = self.post("/v1/responses/input_tokens", headers, body)["input_tokens"]
        return tokens

    def post(self, path: str, headers: dict[str, str] | None, body: dict[str, Any]) -> dict[str, Any]:
        with self.server.http() as client:
            answer = client.post(path, json=body, headers=headers or {})
        assert answer.status_code in (200, 201), answer.text
        found: dict[str, Any] = answer.json()
        return found

    def check(self, headers: dict[str, str] | None = None, **body: Any) -> int:
        counted = self.counted(headers, **body)
        estimated = self.turn(headers, **body)["usage"]["input_tokens"]
        assert abs(counted - estimated) <= SEPARATORS
        return counted


@pytest.fixture
def counting(make_server: Callable[..., Server], stub: ModelStub) -> Counting:
    server = make_server(
        HERMES_PROVIDER="custom",
        HERMES_BASE_URL=stub.url,
        HERMES_MODEL="m",
        HERMES_CONTEXT_LENGTH=str(WINDOW),
    )
    return Counting(server, stub)


def test_a_count_is_what_the_turn_estimates(counting: Counting) -> None:
    plain = counting.check(input="hello")
    counting.noted("memory", NOTE)
    remembered = counting.check(input="hello")
    assert remembered > plain + 80
    assert counting.check({"X-Hermes-Session-Key": "another"}, input="hello") < remembered - 80
    counting.noted("todo", PLAN, **{"X-Hermes-Session-Id": "planned"})
    assert counting.check({"X-Hermes-Session-Id": "planned"}, input="hello") > remembered + 60
    session = counting.post("/api/sessions", None, {"system_prompt": RULES})["session"]["id"]
    assert counting.check({"X-Hermes-Session-Id": session}, input="hello") > remembered + 120
    ruled = counting.turn(input="first", instructions=RULES)["id"]
    counting.check(input="hello", previous_response_id=ruled)
    assert counting.counted(input="hello", store=False) < remembered - 80  # such a turn has no notes


def test_notes_and_inherited_instructions_count_at_admission(counting: Counting) -> None:
    free = WINDOW - counting.counted(input="")
    nearly_full = "word " * (free - 60)
    first = counting.turn(input=nearly_full, store=False)
    assert first["status"] == "completed"
    counting.noted("memory", NOTE)
    ruled = counting.turn(input="first", instructions=RULES)["id"]
    for body in ({}, {"previous_response_id": ruled, "store": False}):
        with counting.server.http() as client:
            refused = client.post("/v1/responses", json={"input": nearly_full, **body})
        error = refused.json()["error"]
        assert (refused.status_code, error["code"]) == (400, "context_length_exceeded"), refused.text
