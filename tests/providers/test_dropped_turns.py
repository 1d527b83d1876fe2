"""A tool call that keeps being cut off, through a real server: the turn ends, and the next one knows."""

from collections.abc import Callable

import pytest

from tests.support.checker import check_log
from tests.support.model_stub import (
    Call,
    Calls,
    Cut,
    Finish,
    ModelStub,
    Text,
)
from tests.support.server import Server
from tests.support.stored_rows import stored_rows

pytestmark = pytest.mark.any_database


def test_the_turn_names_the_tool_and_the_next_one_reports_it(
    make_server: Callable[..., Server], stub: ModelStub
) -> None:
    server = make_server(HERMES_PROVIDER="custom", HERMES_BASE_URL=stub.url, HERMES_MODEL="m")
    for _ in range(4):
        stub.play(Calls((Call("c1", "write_file", ('{"path": "a", "content": "xx',)),)), Cut())
    with server.http() as client:
        body = client.post("/v1/responses", json={"input": "write it"}).json()
    assert body["status"] == "incomplete"
    assert body["incomplete_details"]["reason"] == "tool_call_dropped"
    assert "write_file" in body["incomplete_details"]["message"]
    assert not stored_rows(server, "toolevent", "id")
    check_log(server, body["id"])
    stub.play(Text("in smaller steps"), Finish())
    with server.http() as client:
        client.post("/v1/responses", json={"input": "continue", "previous_response_id": body["id"]})
    reported = str(stub.asked[-1].body["messages"])
    assert "write_file was cut off" in reported
    assert "was not carried out" in reported
