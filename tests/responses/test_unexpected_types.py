"""Any JSON value in any place of a request: taken, or a 400 that names the field."""

from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pytest
from django.contrib.auth.models import User

from gateway_app.agent.context import build_items
from gateway_app.agent.model_call import ModelCall
from gateway_app.agent.summaries import summary_call
from gateway_app.api.chat.requests import read_chat
from gateway_app.api.runs.requests import read_run
from gateway_app.api.sessions.turn_request import read_chat as read_session_chat
from gateway_app.providers.builtin.script import count_tokens
from responses_app.http.principals import Principal
from responses_app.models import Session
from responses_app.protocol.errors import ApiError
from responses_app.protocol.items import Item
from responses_app.protocol.token_estimate import estimate_tokens
from responses_app.requests.compact import read_compact
from responses_app.requests.create import read_create
from responses_app.services.history.resent_history import hash_after
from responses_app.services.history.transcript import messages_of
from tests.support.server import Server
from tests.support.websockets import socket

pytestmark = pytest.mark.any_database

Body = dict[str, Any]
Path = tuple[str | int, ...]
ODD: list[Any] = [
    *(True, 0, 1.5, 10**18, "", "x", [], {}, ["a"], {"a": "b"}, [[]], [{}], [None], {"type": []}),
    {"text": 5, "type": "input_text"},
]
CALL = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}
ITEMS: list[Body] = [
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "a"}]},
    {
        "role": "user",
        "content": [{"type": "input_image", "image_url": "https://x.example/y", "detail": "low"}],
    },
    {"role": "assistant", "phase": "p", "content": [{"type": "refusal", "refusal": "no"}]},
    {
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "hm"}],
        "content": [{"type": "reasoning_text", "text": "hm"}],
        "encrypted_content": "sealed",
    },
    {**CALL, "status": "completed", "id": "fc_1"},
    {"type": "function_call_output", "call_id": "c1", "output": [{"type": "text", "text": "r"}]},
    {"type": "custom_tool_call", "call_id": "c2", "name": "write", "input": "x"},
    {"type": "custom_tool_call_output", "call_id": "c2", "output": "r"},
    {
        **{"type": "mcp_call", "id": "m", "server_label": "hermes", "name": "n", "arguments": "{}"},
        **{"output": "r", "error": {"content": [{"text": "t"}]}, "status": "completed"},
    },
    {"type": "web_search_call", "id": "w", "status": "completed", "action": {"query": "x"}},
    {"type": "shell_call_output", "call_id": "s", "output": [{"text": "t"}]},
    {"type": "local_shell_call", "content": "c", "role": "user", "summary": "s", "phase": "p"},
    {"role": "user", "content": "last"},
]
FEW = [ITEMS[0], ITEMS[3]]  # every surface reads items with the same readers
MCP = {
    **{"type": "mcp", "server_label": "hermes", "server_url": "u", "connector_id": "c"},
    "require_approval": {"always": {"tool_names": ["a"]}, "never": {"tool_names": ["b"]}},
    "allowed_tools": {"tool_names": ["read_file"]},
}
GRAMMAR = {"type": "grammar", "syntax": "lark", "definition": "d"}
FUNCTION = {"name": "look", "description": "d", "parameters": {"type": "object"}, "strict": True}
TOOLS = [
    {"type": "function", **FUNCTION},
    {"type": "custom", "name": "write", "description": "d", "format": GRAMMAR},
    MCP,
    {"type": "web_search", "filters": {}},
]
FORMAT = {"type": "json_schema", "name": "n", "schema": {"type": "object"}}
FIELDS: Body = {
    "instructions": "i",
    "max_output_tokens": 9,
    "max_tool_calls": 9,
    "metadata": {"k": "v"},
    "model": "hermes-agent",
    "parallel_tool_calls": True,
    "prompt_cache_key": "k",
    "reasoning": {"effort": "low", "summary": "auto"},
    "service_tier": "auto",
    "temperature": 1,
    "text": {"format": FORMAT, "verbosity": "low"},
    "tool_choice": {
        "type": "allowed_tools",
        "mode": "auto",
        "tools": [{"type": "function", "name": "look"}],
    },
    "tools": TOOLS,
    "top_logprobs": 1,
    "top_p": 1,
    "truncation": "auto",
    "include": ["reasoning.encrypted_content"],
    "context_management": [{"type": "compaction", "compact_threshold": 2000}],
}
MESSAGES = [
    {"role": "developer", "content": "d", "name": "n"},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "t"},
            {"type": "image_url", "image_url": {"url": "https://x.example/y", "detail": "low"}},
        ],
    },
    {
        "role": "assistant",
        "content": None,
        "refusal": "no",
        "reasoning_content": "hm",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}},
            {"id": "c2", "type": "custom", "custom": {"name": "write", "input": "x"}},
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "r"}]},
    {"role": "tool", "tool_call_id": "c2", "content": "r"},
]
CHAT: Body = {
    **{"messages": MESSAGES, "max_tokens": 9, "stop": ["s"], "seed": 1, "n": 1, "logprobs": True},
    **{"top_logprobs": 1, "logit_bias": {"5": 1}, "frequency_penalty": 0, "presence_penalty": 0},
    **{"reasoning_effort": "low", "verbosity": "low", "metadata": {"k": "v"}, "store": True},
    **{"stream": True, "stream_options": {"include_usage": True}},
    "prediction": {"type": "content"},
    "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}},
    "tools": [{"type": "function", "function": FUNCTION}],
    "tool_choice": {"type": "function", "function": {"name": "look"}},
}
PRINCIPAL = Principal(User(pk=1))
READERS: dict[str, tuple[Callable[[Body], list[Item]], Body]] = {
    "responses": (
        lambda body: read_create(body, PRINCIPAL).admission.items,
        {"input": ITEMS, "stream_options": {"include_obfuscation": False}, **FIELDS},
    ),
    "compact": (
        lambda body: read_compact(body, PRINCIPAL).items,
        {"input": FEW, "model": "hermes-agent", "instructions": "i", "service_tier": "auto"},
    ),
    "chat": (lambda body: read_chat(body, PRINCIPAL).admission.items, CHAT),
    "runs": (
        lambda body: read_run(body, PRINCIPAL).items,
        {"input": FEW, "conversation_history": FEW, "session_id": "s", "tools": TOOLS[:1]},
    ),
    "session chat": (
        lambda body: read_session_chat(body, PRINCIPAL, Session(public_id="s")).items,
        {"message": FEW, "system_message": "s", "tools": TOOLS[:1]},
    ),
}


def places(value: Any, path: Path = ()) -> Iterator[Path]:
    """Every value inside, by the way that leads to it."""
    if path:
        yield path
    inner: list[tuple[str | int, Any]] = []
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
    for step, part in inner:
        yield from places(part, (*path, step))


def with_value(body: Body, path: Path, value: Any) -> Body:
    made: Body = orjson.loads(orjson.dumps(body))
    holder: Any = made
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = value
    return made


def use(items: list[Item]) -> None:
    """What the server does with the items of a request that it has taken."""
    orjson.dumps([messages_of(items), hash_after("", items), estimate_tokens(items, None, [])])
    shown, _ = build_items(items)
    call = ModelCall("m", shown)
    orjson.dumps([summary_call(call, shown).items, count_tokens(call)])


def refused(read: Callable[[Body], list[Item]], body: Body) -> ApiError | None:
    try:
        use(read(body))
    except ApiError as refusal:
        return refusal
    return None


@pytest.mark.django_db
@pytest.mark.parametrize("surface", READERS)
def test_every_value_is_taken_or_refused_by_the_name_of_its_field(surface: str) -> None:
    read, body = READERS[surface]
    use(read(with_value(body, ("metadata",), {})))
    for path in places(body):
        for value in ODD:
            refusal = refused(read, with_value(body, path, value))
            if refusal is not None:
                assert refusal.status in (400, 404), (path, value, refusal.message)
                named = str(refusal.param).replace("[", ".").split(".")[0]
                related = {str(path[0]), "tool_choice" if path[0] == "tools" else ""}
                assert named in related, (path, value, refusal.param)


# -- over real connections --------------------------------------------------------------
NO_TEXT: list[Any] = [["a"], {"a": 1}, 5, True]
SURFACES: dict[str, tuple[str, Callable[[Body], Body]]] = {
    "/v1/responses": ("input[0].type", lambda item: {"input": [item]}),
    "/v1/responses/input_tokens": ("input[0].type", lambda item: {"input": [item]}),
    "/v1/responses/compact": ("input[0].type", lambda item: {"input": [item], "model": None}),
    "/v1/conversations": ("items[0].type", lambda item: {"items": [item]}),
    "/v1/conversations/odd-types/items": ("items[0].type", lambda item: {"items": [item]}),
    "/v1/runs": ("input[0].type", lambda item: {"input": [item]}),
    "/api/sessions/odd-types/chat": ("message[0].type", lambda item: {"message": [item]}),
    "/v1/chat/completions": (
        "messages[0].content[0].type",
        lambda item: {"messages": [{"role": "user", "content": [item]}]},
    ),
}


def test_a_type_that_is_no_text_is_refused_by_name_on_every_surface(server: Server) -> None:
    with server.http() as client:
        client.post("/v1/conversations", json={"name": "odd-types"})
        client.post("/api/sessions", json={"id": "odd-types"})
        for path, (param, body) in SURFACES.items():
            for kind in NO_TEXT:
                answer = client.post(path, json=body({"type": kind}))
                assert answer.status_code == 400, (path, kind, answer.text)
                assert answer.json()["error"]["param"] == param


def test_a_type_that_is_no_text_is_refused_by_name_on_a_websocket(server: Server) -> None:
    with socket(server) as connection:
        for kind in NO_TEXT:
            connection.create(input=[{"type": kind}])
            refused = connection.receive()
            assert (refused["status"], refused["error"]["param"]) == (400, "input[0].type")


HUGE = "1" + "0" * 400
NUMBERS: dict[str, tuple[str, ...]] = {
    "/v1/responses": (
        *("temperature", "top_p", "max_output_tokens", "max_tool_calls", "top_logprobs"),
        "an_unknown_field",
    ),
    "/v1/chat/completions": (
        *("temperature", "top_p", "seed", "max_tokens", "max_completion_tokens", "n"),
        *("frequency_penalty", "presence_penalty", "top_logprobs"),
    ),
}


@pytest.mark.parametrize("written", [HUGE, f"-{HUGE}", f"{HUGE}.5", "1" * 5000, "1e400"])
def test_a_number_beyond_all_bounds_is_refused_by_name(server: Server, written: str) -> None:
    needed = '"input": "x", "messages": [{"role": "user", "content": "x"}]'
    with server.http() as client:
        for path, fields in NUMBERS.items():
            for field in fields:
                body = f'{{{needed}, "{field}": {written}}}'
                answer = client.post(path, content=body.encode())
                assert answer.status_code == 400, (field, answer.text)
                assert answer.json()["error"]["param"] == field
