"""POST /v1/responses/input_tokens: an estimate that grows with what the model would be shown."""

from typing import Any

import pytest

from tests.support.server import Server

pytestmark = pytest.mark.any_database


def count(server: Server, **body: Any) -> int:
    with server.http() as client:
        answer = client.post("/v1/responses/input_tokens", json=body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["object"] == "response.input_tokens"
    tokens: int = answer.json()["input_tokens"]
    return tokens


def test_history_instructions_and_tools_count(server: Server) -> None:
    client = server.openai()
    short = count(server, input="hi")
    assert client.responses.input_tokens.count(model="hermes-agent", input="hi").input_tokens == short
    assert count(server, input="hi " * 400) > short + 350
    assert count(server, input="hi", instructions="Be kind. " * 20) > short
    without_tools = count(server, input="hi", tools=[])
    assert short > without_tools + 50  # the tools that the server offers
    assert count(server, input="hi", tools=[{"type": "function", "name": "f"}]) > without_tools
    assert count(server, input="渡" * 1000) > short + 900
    previous = client.responses.create(model="hermes-agent", input="write 100 words").id
    assert count(server, input="hi", previous_response_id=previous) > short + 100
    client.responses.create(model="hermes-agent", input="write 100 words", conversation="counted")
    assert count(server, input="hi", conversation="counted") > short + 100


def test_odd_items_are_counted_too(server: Server) -> None:
    odd = [
        {"type": "computer_call_output", "call_id": "c", "output": {"type": "computer_screenshot"}},
        {"type": "mcp_call", "server_label": "elsewhere", "name": "n", "arguments": "{}", "error": "no"},
        {"type": "reasoning", "content": [{"type": "text", "text": "x"}]},
    ]
    assert count(server, input=odd) > 0


@pytest.mark.parametrize(("body", "status"), [({"input": 5}, 400), ({"previous_response_id": "resp_no"}, 404)])
def test_bad_requests_are_refused_as_when_creating(server: Server, body: dict[str, Any], status: int) -> None:
    with server.http() as client:
        assert client.post("/v1/responses/input_tokens", json=body).status_code == status
