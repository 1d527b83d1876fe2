"""Real answers, held against the document: each operation's success, its errors and its streams."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.chat_client import (
    WEATHER,
    left_waiting,
    scripted,
    user,
)
from tests.support.hermes_client import until_status
from tests.support.openapi_reader import Client
from tests.support.server import Server, eventually, script

pytestmark = pytest.mark.any_database

FUNCTION = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}}
CUSTOM = {"type": "custom", "name": "write"}
OWN = {"type": "mcp", "server_label": "hermes"}
WORK = ({"think": "hm"}, {"call": "effect", "arguments": {"text": "x"}}, {"say": "done"})
REASONED = [{"type": "reasoning_text", "text": "hm"}]
SENT_BACK = [
    {"role": "assistant", "content": [{"type": "output_text", "text": "b", "annotations": [], "logprobs": []}]},
    {"type": "web_search_call", "action": {"query": "x"}},
    {"type": "mcp_call", "server_label": "s", "name": "n", "arguments": "{}", "error": "no"},
    {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}], "content": REASONED},
]
UNKNOWN = "nothing-of-this-name"
WRONG = "x" * 300
NEEDED = {"input": "x", "messages": [user("x")], "model": "hermes-agent"}
STATUSES = {"/v1/responses": 200, "/v1/chat/completions": 200, "/v1/runs": 202, "/api/sessions": 201}
# What no field is; a schema that refuses it must be right.
NONSENSE: tuple[Any, ...] = (-1.5, [[1]], {"no": {"such": "thing"}}, "\u00e9 no such thing")


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with server.http() as http:
        yield Client(server, http)


def waiting_response(client: Client) -> str:
    """One that waits for consent."""
    asked = {"input": script({"call": "guarded", "arguments": {"text": "ok"}}), "background": True}
    response_id: str = client.post("/v1/responses", asked)["id"]
    eventually(lambda: client.get(f"/v1/responses/{response_id}/approval")["pending"], what="the wait for consent")
    return response_id


# -- the surfaces -----------------------------------------------------------------------
def discovery(client: Client) -> None:
    for path in ("/health/detailed", "/api/status", "/metrics"):
        client.ask("get", path)
    for path in ("/health", "/v1/health", "/v1/models", "/v1/capabilities", "/v1/toolsets", "/openapi.json", "/docs"):
        client.get(path)
    client.get("/v1/models/hermes-agent")
    client.get("/v1/models/none", 404)
    client.get("/api/platforms/fake/events")
    client.post("/api/platforms/fake/events", {"messages": [{"id": "openapi", "chat": "openapi", "text": "hello"}]})
    client.get("/v1/toolsets", 404, params={"model": "none"})


def responses(client: Client) -> None:
    made = client.post("/v1/responses", {"input": script(*WORK), "metadata": {"a": "b"}, "unknown": 1})
    for tools in ([FUNCTION], [CUSTOM], [OWN]):
        name = {"function": "look", "custom": "write"}.get(str(tools[0]["type"]), "explode")
        steps = ({"say": "I call."}, {"call": name, "arguments": {}})
        asked = {"input": script(*steps), "tools": tools, "stream": True}
        event_data = client.post("/v1/responses", asked)
        assert event_data[-1] == "[DONE]"
    client.post("/v1/responses", {"input": script(*WORK), "stream": True, "tool_choice": "auto"})
    client.post("/v1/responses", {"input": script({"fail": "no"}), "stream": True})
    client.post("/v1/responses", {"input": "one two three", "max_output_tokens": 1, "store": False})
    client.post("/v1/responses", {"input": "x", "previous_response_id": "resp_none"}, 404)
    client.post("/v1/responses", {"input": 5}, 400)
    path = f"/v1/responses/{made['id']}"
    client.get(path)
    client.get(path, params={"stream": "true"})
    client.get(path, params={"stream": "true", "starting_after": 3}, headers={"Accept": "text/event-stream"})
    client.get(path, 400, params={"stream": "true", "starting_after": 999})
    client.get(f"{path}/input_items")
    client.get("/v1/responses", params={"status": "completed", "model": "hermes-agent", "limit": 5})
    client.get("/v1/responses", 400, params={"limit": 0})
    client.post("/v1/responses/input_tokens", {"input": "How many?"})
    compact(client)
    running = client.post("/v1/responses", {"input": script({"gate": "never"}), "background": True})
    client.post(f"/v1/responses/{running['id']}/cancel")
    client.ask("DELETE", path)


def compact(client: Client) -> None:
    path, long = "/v1/responses/compact", {"role": "assistant", "content": "long ago " * 500}
    output = client.post(path, {"model": None, "input": [{"role": "user", "content": "x"}, long]})["output"]
    client.post(path, {"model": None, "input": [{**output[-1], "encrypted_content": "x"}]}, 400)
    managed = {"context_management": [{"type": "compaction", "compact_threshold": 1000}], "stream": True}
    client.post("/v1/responses", {"input": [*output, long, {"role": "user", "content": "now"}], **managed})


def repeated(client: Client) -> None:
    bodies: dict[str, Any] = {
        "/v1/responses": {"input": "again"},
        "/v1/chat/completions": {"messages": [user("again")]},
    }
    for path, body in bodies.items():
        key = {"Idempotency-Key": f"openapi{path}"}
        client.post(path, body, headers=key)
        client.post(path, body, headers=key)
        client.post(path, {**body, "temperature": 1}, 422, headers=key)


def approvals(client: Client) -> None:
    response_id = waiting_response(client)
    client.post(f"/v1/responses/{response_id}/approval", {"choice": "perhaps"}, 400)
    client.post(f"/v1/responses/{response_id}/approval", {"choice": "once"})
    client.server.ended(response_id)
    client.post(f"/v1/responses/{response_id}/approval", {"choice": "once"}, 409)


def conversations(client: Client) -> None:
    image = {"type": "input_image", "image_url": "https://x.example/y.png"}
    reply = {"role": "user", "content": [image, {"type": "input_text", "text": "a"}]}
    made = client.post("/v1/conversations", {"items": [reply], "metadata": {"a": "b"}, "name": "openapi"})
    path = f"/v1/conversations/{made['id']}"
    client.post("/v1/responses", {"input": script(*WORK), "conversation": made["id"]})
    client.get(path)
    client.post(path, {"metadata": {}})
    client.post(path, {}, 400)
    client.post(f"{path}/items", {"items": SENT_BACK})
    listed = client.get(f"{path}/items", params={"order": "asc"})
    client.get(f"{path}/items/{listed['first_id']}")
    client.ask("DELETE", f"{path}/items/{listed['first_id']}")
    client.ask("DELETE", path)


def chat(client: Client) -> None:
    path = "/v1/chat/completions"
    made = client.post(path, {"messages": scripted(*WORK), "store": True, "metadata": {"a": "b"}, "stop": ["no"]})
    called = scripted({"say": "I call."}, {"call": "get_weather", "arguments": {"city": "Ulm"}})
    for more in ({}, {"stream": True}):
        client.post(path, {"messages": called, "tools": [WEATHER], **more})
        client.post(path, {"messages": [user("one two three")], "max_tokens": 1, **more})
    options = {"stream": True, "stream_options": {"include_usage": True}}
    client.post(path, {"messages": scripted(*WORK), **options}, headers={"X-Hermes-Tool-Detail": "full"})
    guarded = {"messages": scripted({"call": "guarded", "arguments": {"text": "ok"}}), "store": True, **options}
    key = {"Idempotency-Key": "openapi-consent", "X-Hermes-Approval-Wait": "true"}
    client.post(f"/v1/runs/{left_waiting(client.http, guarded, key)}/approval", {"choice": "once"})
    event_data = client.post(path, guarded, headers=key)
    assert [reply["approval"]["tool"] for reply in event_data if "approval" in reply] == ["guarded"] * 2
    client.post(path, {"messages": scripted({"fail": "no"}), **options})
    client.post(path, {"messages": scripted({"fail": "no"})}, 500)
    client.post(path, {"messages": scripted({"fail": "slow", "code": "rate_limit_exceeded"})}, 429)
    client.get(path, params={"model": "hermes-agent", "metadata[a]": "b"})
    client.get(f"{path}/{made['id']}")
    client.post(f"{path}/{made['id']}", {"metadata": {"c": "d"}})
    client.post(f"{path}/{made['id']}", {}, 400)
    weather_call = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}
    image = {"type": "image_url", "image_url": {"url": "https://x.example/y.png"}}
    exchange = [
        {"role": "assistant", "tool_calls": [weather_call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "wet"},
    ]
    kept = client.post(path, {"messages": [user(["a", image]), *exchange], "tools": [WEATHER], "store": True})
    client.get(f"{path}/{kept['id']}/messages")
    client.ask("DELETE", f"{path}/{made['id']}")


def runs(client: Client) -> None:
    run_id = client.post("/v1/runs", {"input": script(*WORK), "session_id": "openapi-runs"}, 202)["run_id"]
    client.get(f"/v1/runs/{run_id}/events")
    client.get(f"/v1/runs/{run_id}/events", 400, params={"after": 9999})
    client.get(f"/v1/runs/{run_id}")
    asked = {"input": script({"call": "look", "arguments": {}}), "tools": [FUNCTION], "provider": "x"}
    for body in (asked, {"input": script({"fail": "no"})}, {"input": "one two three", "max_output_tokens": 1}):
        other = client.post("/v1/runs", body, 202)["run_id"]
        client.get(f"/v1/runs/{other}/events")
        client.get(f"/v1/runs/{other}")
    guarded = {"input": script({"call": "guarded", "arguments": {"text": "ok"}})}
    waits = client.post("/v1/runs", guarded, 202)["run_id"]
    until_status(client.server, waits, "waiting_for_approval")
    client.get(f"/v1/runs/{waits}")
    client.post(f"/v1/runs/{waits}/approval", {"choice": "deny", "all": True})
    client.get(f"/v1/runs/{waits}/events")
    running = client.post("/v1/runs", {"input": script({"gate": "never"})}, 202)["run_id"]
    client.post(f"/v1/runs/{running}/stop")
    client.get(f"/v1/runs/{running}/events")
    client.post(f"/v1/runs/{running}/stop")
    client.get("/v1/runs", params={"status": "completed"})


def sessions(client: Client) -> None:
    path = "/api/sessions/openapi"
    client.post("/api/sessions", {"id": "openapi", "title": "T", "system_prompt": "P", "provider": "x"}, 201)
    client.post("/api/sessions", {"id": "openapi"}, 409)
    client.post(f"{path}/chat", {"message": script(*WORK)})
    client.post(f"{path}/chat", {"message": script({"fail": "no"})}, 502)
    client.post(f"{path}/chat", {"input": script({"call": "look", "arguments": {}}), "tools": [FUNCTION]})
    answers = [{"type": "function_call_output", "call_id": "none", "output": "x"}]
    client.post(f"{path}/chat", {"message": answers}, 400)
    client.ask("DELETE", path)
    client.post("/api/sessions", {"id": "openapi"}, 201)
    for steps in (WORK, ({"call": "explode", "arguments": {}},), ({"fail": "no"},)):
        client.post(f"{path}/chat/stream", {"message": script(*steps)})
    client.get(path)
    client.get(f"{path}/messages", params={"order": "oldest", "limit": 3})
    client.ask("PATCH", path, {"pinned": True, "title": None})
    client.ask("PATCH", path, {"id": "other"}, 400)
    client.post(f"{path}/model", {"model": "hermes-agent"})
    fork = client.post(f"{path}/fork", {"title": "F"}, 201)["session"]["id"]
    client.get(f"/api/sessions/{fork}/messages")
    client.get("/api/sessions", params={"limit": 10})


SURFACES = (discovery, responses, repeated, approvals, conversations, chat, runs, sessions)


# -- the tests --------------------------------------------------------------------------
def test_every_operation_answers_as_described(client: Client) -> None:
    for surface in SURFACES:
        surface(client)
    answered = {(method, path) for method, path, status in client.reader.seen if status < "300"}
    assert answered == {(method, path) for method, path, _ in client.reader.operations()}


def test_every_operation_refuses_as_described(client: Client) -> None:
    for method, template, operation in client.reader.operations():
        path = template.replace("{", "").replace("}", UNKNOWN)
        body: dict[str, Any] | None = {} if "requestBody" in operation else None
        is_open = operation.get("security") == []
        client.ask(method, path, body, 415, headers={"Content-Encoding": "gzip"})
        if not is_open:
            client.ask(method, path, body, 401, headers={"Authorization": "Bearer wrong"})
        assert ("401" in operation["responses"]) is not is_open
        if "{" in template:
            refused = client.http.request(method, path, json=valid_body(template))
            assert refused.status_code == 404, (method, template, refused.text)
            client.reader.check(refused)


def valid_body(template: str) -> dict[str, Any]:
    bodies = {"approval": {"choice": "once"}, "chat": {"message": "x"}, "stream": {"message": "x"}}
    return bodies.get(template.rsplit("/", 1)[1], {"items": [], "metadata": {}})


@pytest.mark.parametrize("path", [*STATUSES, "/v1/responses/compact"])
def test_what_the_document_refuses_is_refused(client: Client, path: str) -> None:
    schema = client.reader.body_schema("post", path)
    needed = {*schema.get("required", ()), *(name for one in schema.get("anyOf", ()) for name in one["required"])}
    least = {name: value for name, value in NEEDED.items() if name in needed}
    tried = 0
    for field in schema["properties"]:
        for value in NONSENSE:
            body = {**least, field: value}
            if not client.reader.accepts(body, schema):
                answer = client.http.post(path, json=body)
                assert answer.status_code in (400, 404), (field, value, answer.text[:200])
                assert answer.json()["error"]["param"].startswith(field), answer.text
                tried += 1
    assert tried > 10


@pytest.mark.parametrize("path", [*STATUSES, "/v1/responses/input_tokens", "/v1/conversations"])
def test_null_is_as_good_as_absent_and_unknown_fields_are_let_in(client: Client, path: str) -> None:
    schema = client.reader.body_schema("post", path)
    least = {name: value for name, value in NEEDED.items() if name in schema.get("required", ())}
    nulls = dict.fromkeys(schema["properties"].keys() - least.keys())
    client.post(path, {**least, **nulls, "of_the_future": 1}, STATUSES.get(path, 200))


def test_every_parameter_is_read(client: Client) -> None:
    """What a parameter can't be is refused by its name."""
    ids = parameters_of_paths(client)
    tried = set()
    for method, template, operation in client.reader.operations():
        for parameter in map(client.reader.resolved, operation["parameters"]):
            name, is_header = parameter["name"], parameter["in"] == "header"
            if client.reader.accepts(WRONG, parameter["schema"]) or parameter.get("style") == "deepObject":
                continue  # a text to look for
            streamed = {"stream": "true"} if name in ("starting_after", "Last-Event-ID") else {}
            answer = client.http.request(
                method,
                template.format(**ids),
                json=NEEDED if method == "post" else None,
                params=streamed if is_header else {**streamed, name: WRONG},
                headers={name: WRONG} if is_header else {},
            )
            assert answer.status_code == 400, (method, template, name, answer.text)
            assert answer.json()["error"]["param"] == name
            tried.add(name)
    assert len(tried) > 12


def parameters_of_paths(client: Client) -> dict[str, str]:
    started = client.post("/v1/runs", {"input": "x", "session_id": "openapi-parameters"}, 202)
    named = {name: started[name] for name in ("run_id", "response_id", "session_id")}
    made = client.post("/v1/conversations", {})["id"]
    kept = client.post("/v1/chat/completions", {"messages": [user("x")], "store": True})["id"]
    return {**named, "conversation_id": made, "model": "x", "item_id": "x", "completion_id": kept, "platform": "fake"}
