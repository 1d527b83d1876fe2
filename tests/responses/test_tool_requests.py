"""How a request asks for the server's tools, and what it may not do with them."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.approvals import decide, until_waiting
from tests.support.checker import check_log
from tests.support.model_stub import (
    Call,
    Calls,
    Finish,
    ModelStub,
    Text,
)
from tests.support.scripted_requests import call, effects
from tests.support.server import (
    Server,
    eventually,
    script,
    text,
)
from tests.support.stored_rows import stored_rows, tool_calls

pytestmark = pytest.mark.any_database

HERMES: Any = {"type": "mcp", "server_label": "hermes"}


def post(server: Server, **body: Any) -> Any:
    with server.http() as client:
        return client.post("/v1/responses", json={"input": "x", **body})


def test_an_upstream_that_counts_its_calls_anew_gets_no_old_result(
    make_server: Callable[..., Server], stub: ModelStub
) -> None:
    """The turn is taken up again after an approval, in the form that shows no call ids."""
    server = make_server(HERMES_PROVIDER="custom", HERMES_BASE_URL=stub.url, HERMES_MODEL="m")
    for name, reply in (("effect", "first"), ("guarded", "second"), ("guarded", "third")):
        stub.play(Calls((Call("call_0", name, (f'{{"text": "{reply}"}}',)),)), Finish("tool_calls"))
    stub.play(Text("done"), Finish())
    response_id = post(server, tools=[HERMES], background=True).json()["id"]
    until_waiting(server, response_id)
    decide(server, response_id, "once")
    [asked] = eventually(lambda: [p for p in until_waiting(server, response_id) if "third" in p["arguments"]])
    assert effects(server, "third") == 0
    decide(server, response_id, "once", request_id=asked["request_id"])
    body = server.ended(response_id)
    assert [item.get("output") for item in body["output"][:3]] == ["first", "second", "third"]
    assert len({row[0] for row in stored_rows(server, "toolevent", "call_id")}) == 3
    check_log(server, response_id)


def test_a_profile_called_two_dots_stays_in_its_owners_folder(make_server: Callable[..., Server]) -> None:
    server = make_server(HERMES_UNKNOWN_MODEL="default")
    server.manage("shell", "-c", "from responses_app.models import Profile; Profile.objects.create(name='..')")
    answer = post(server, model="..", input=script(call("write_file", path="a.txt", content="x")))
    assert answer.json()["status"] == "completed"
    [written] = (server.home / "workspaces").rglob("a.txt")
    assert len(written.relative_to(server.home / "workspaces").parts) == 4


def test_the_names_of_the_default_mean_the_same_agent(make_server: Callable[..., Server]) -> None:
    server = make_server(API_SERVER_MODEL_NAME="house")
    made = "from responses_app.models import Profile; Profile.objects.create(name='house', instructions='Be kind.')"
    server.manage("shell", "-c", made)
    for number, model in enumerate(("house", "default", "hermes-agent", None)):
        assert post(server, model=model, input=f"who-{number}").json()["model"] == "house"
        assert server.model_calls(f"who-{number}")[0]["instructions"] == "Be kind."


def test_a_request_may_want_to_be_asked(server: Server) -> None:
    for rule in ("always", {"always": {"tool_names": ["effect"]}}):
        tools = [{**HERMES, "require_approval": rule}]
        asked = {"input": script(call("effect", text="asked first")), "tools": tools, "background": True}
        response_id = post(server, **asked).json()["id"]
        until_waiting(server, response_id)
        decide(server, response_id, "deny")
        server.ended(response_id)
    assert effects(server, "asked first") == 0


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"tools": [{**HERMES, "require_approval": "sometimes"}]}, "tools[0].require_approval"),
        ({"tools": [{**HERMES, "allowed_tools": {"read_only": True}}]}, "tools[0].allowed_tools.read_only"),
        ({"tools": [{**HERMES, "allowed_tools": "all"}]}, "tools[0].allowed_tools"),
        ({"input": [{"type": "mcp_call", "server_label": "hermes", "arguments": "{}"}]}, "input[0].name"),
        ({"input": [{"type": "mcp_call"}]}, "input[0].server_label"),
        ({"input": [{**HERMES, "type": "mcp_call", "name": "x", "arguments": {}}]}, "input[0].arguments"),
        ({"tools": [{"type": "custom", "name": "p", "format": []}]}, "tools[0].format"),
        ({"tools": [{"type": "custom", "name": "p", "format": {"type": "grammar"}}]}, "tools[0].format.syntax"),
        ({"tool_choice": {"type": "function", "name": "nosuch"}}, "tool_choice"),
        ({"tools": [{**HERMES, "allowed_tools": ["nosuch"]}], "tool_choice": "required"}, "tool_choice"),
    ],
    ids=range(10),
)
def test_bad_options_are_named(server: Server, body: dict[str, Any], param: str) -> None:
    refused = post(server, **body)
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, param), refused.text


def test_a_tool_of_another_kind_may_have_any_name(server: Server) -> None:
    answer = post(server, tools=[{"type": "web_search", "name": {"a": 1}}])
    assert (answer.status_code, answer.json()["status"]) == (200, "completed")
    assert "web_search" in answer.headers["X-Hermes-Ignored"]


def test_a_resent_mcp_call_is_shown_to_the_model_as_a_call(server: Server) -> None:
    called = {**HERMES, "type": "mcp_call", "name": "effect", "arguments": "{}", "output": "resent result"}
    history = [{"role": "user", "content": "x"}, called, {"role": "user", "content": "what-came-back"}]
    for store in (True, False):
        assert post(server, input=history, store=store).json()["status"] == "completed"
    for seen in server.model_calls("what-came-back"):
        assert "resent result" in seen["texts"]


def test_a_choice_may_name_a_tool_of_the_server(make_server: Callable[..., Server], stub: ModelStub) -> None:
    for mode in ("chat_completions", "codex_responses"):
        server = make_server(HERMES_PROVIDER="custom", HERMES_BASE_URL=stub.url, HERMES_MODEL="m", HERMES_API_MODE=mode)
        stub.play(Text("x"), Finish())
        chosen = {"type": "allowed_tools", "mode": "auto", "tools": [{**HERMES, "name": "calculate"}]}
        assert post(server, tools=[HERMES], tool_choice=chosen).json()["status"] == "completed"
        sent = stub.asked[-1].body
        offered = sent["tools"] if mode == "chat_completions" else sent["tool_choice"]["tools"]
        assert [tool.get("name") or tool["function"]["name"] for tool in offered] == ["calculate"]
        stub.play(Text("x"), Finish())
        forced = post(server, tools=[HERMES], tool_choice={"type": "function", "name": "calculate"})
        assert forced.status_code == 200


def test_what_is_inside_a_field_is_named_too(server: Server) -> None:
    fields = {"reasoning": {"zzz": 1}, "text": {"yyy": 2}, "stream_options": {"include_obfuscation": True}}
    ignored = post(server, **fields).headers["X-Hermes-Ignored"]
    for name in ("reasoning.zzz", "text.yyy", "stream_options.include_obfuscation"):
        assert name in ignored


def test_a_cancelled_internal_call_does_not_stay_open(server: Server) -> None:
    step = call("_hidden", text="hidden cancel", gate="never")
    response_id = post(server, input=script(step), background=True).json()["id"]
    eventually(lambda: effects(server, "hidden cancel"), what="the call to begin")
    with server.http() as client:
        client.post(f"/v1/responses/{response_id}/cancel")
    assert tool_calls(server, response_id)[0][1] == "interrupted"


def test_results_of_parallel_calls_are_shown_as_they_come(server: Server) -> None:
    steps = (call("look", gate="slow-one"), call("calculate", expression="6*7"))
    response_id = post(server, input=script(*steps), background=True).json()["id"]
    eventually(lambda: "42" in str(server.body(response_id)["output"][2:]), what="the quick result")
    assert server.body(response_id)["status"] == "in_progress"
    server.open_gate("slow-one")
    assert text(server.ended(response_id)).startswith("The result is")


def test_compressed_bodies_are_refused(server: Server) -> None:
    with server.http() as client:
        headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
        refused = client.post("/v1/responses", content=b"{}", headers=headers)
        assert (refused.status_code, refused.json()["error"]["code"]) == (415, "unsupported_encoding")
        assert client.options("/v1/models").status_code == 204
