"""Notes of models: kept over turns and sessions, of one owner alone, and erased with what they belong to."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.model_stub import Call, Calls, Finish, ModelStub, Text
from tests.support.people import create_key
from tests.support.server import Server
from tests.support.stored_rows import count_rows, stored_rows

pytestmark = pytest.mark.any_database
TEA = '{"action": "add", "content": "likes tea"}'
DELETE_OWNER = """
from django.contrib.auth.models import User
User.objects.get(agent_notes__text="likes tea").delete()
"""
PLAN = '{"todos": [{"content": "look"}, {"content": "leap"}]}'


class Asking:
    """A server whose model calls what a test says."""

    def __init__(self, server: Server, stub: ModelStub) -> None:
        self.server = server
        self._stub = stub

    def call(self, tool: str, arguments: str, **asked: Any) -> str:
        """The output of the call that the model makes in one turn."""
        self._stub.play(Calls((Call("call_1", tool, (arguments,)),)), Finish("tool_calls"))
        self._stub.play(Text("done"), Finish())
        self._post(**asked)
        return str(self._stub.asked[-1].body["messages"][-1]["content"])

    def prompt(self, **asked: Any) -> str:
        """The instructions of the next turn."""
        self._stub.play(Text("done"), Finish())
        self._post(**asked)
        return str(self._stub.asked[-1].body["messages"][0]["content"])

    def _post(self, session: str = "", key: str | None = None, memory: str = "", **fields: Any) -> None:
        headers = {}
        if session:
            headers["X-Hermes-Session-Id"] = session
        if memory:
            headers["X-Hermes-Session-Key"] = memory
        with self.server.http(key) as client:
            answer = client.post("/v1/responses", json={"input": "go", **fields}, headers=headers)
        assert answer.status_code == 200, answer.text


@pytest.fixture
def asking(make_server: Callable[..., Server], stub: ModelStub) -> Asking:
    server = make_server(HERMES_PROVIDER="custom", HERMES_BASE_URL=stub.url, HERMES_MODEL="m")
    return Asking(server, stub)


def test_notes_outlive_turns_and_belong_to_one_owner_and_one_session(asking: Asking) -> None:
    other = create_key(asking.server, "other")
    assert asking.call("memory", TEA, session="one") == "- likes tea"
    assert asking.call("todo", PLAN, session="one") == "[ ] look\n[ ] leap"
    same = asking.prompt(session="one")
    assert "- likes tea" in same
    assert "[ ] look\n[ ] leap" in same
    another_session = asking.prompt(session="two")
    assert "- likes tea" in another_session
    assert "[ ] look" not in another_session
    for foreign in (asking.prompt(key=other), asking.prompt(key=other, session="one")):
        assert "likes tea" not in foreign
        assert "[ ] look" not in foreign
    assert asking.call("memory", '{"action": "read"}', key=other) == "[there are no notes]"
    assert "likes tea" not in asking.prompt(memory="channel-7"), "a session key is a memory of its own"
    assert "not stored" in asking.call("memory", TEA, store=False)
    with asking.server.http() as client:
        assert client.delete("/api/sessions/one").status_code == 200
    assert stored_rows(asking.server, "note", "kind", "text") == [("memory", "likes tea")]
    asking.server.manage("shell", "-v0", "-c", DELETE_OWNER)
    assert count_rows(asking.server, "note") == 0
