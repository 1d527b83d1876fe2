"""A field of a request accepts the values that its schema describes, and no others."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from gateway_app.api.chat.requests import OWN_FIELDS as CHAT_FIELDS
from gateway_app.api.runs.requests import OWN_FIELDS as RUN_FIELDS
from gateway_app.api.schema.document import document
from gateway_app.api.sessions.requests import CHANGES, CREATE_FIELDS, FORK_FIELDS
from responses_app.protocol.errors import InvalidRequest
from responses_app.requests import approvals, conversations, create
from responses_app.requests.fields import Field, Fields

TABLES: dict[str, Fields] = {
    "responses": create.FIELDS,
    "chat completions": CHAT_FIELDS,
    "runs": {name: field for name, field in RUN_FIELDS.items() if name != "input"},  # converted first, read later
    "new sessions": CREATE_FIELDS,
    "forks": FORK_FIELDS,
    "changes of sessions": CHANGES,
    "conversations": conversations.CREATE_FIELDS,
    "added items": conversations.ADD_FIELDS,
    "approvals": approvals.FIELDS,
}
FIELDS = {f"{table}: {name}": field for table, fields in TABLES.items() for name, field in fields.items()}
MESSAGE = {"role": "user", "content": "x"}
FUNCTION = {"type": "function", "name": "look"}
GRAMMAR = {"type": "grammar", "syntax": "lark", "definition": "d"}
VALUES: list[Any] = [
    *(True, False, -1, 0, 1, 1.0, 1.5, 2, 21, 2000, 10**18),
    *("", "x", "auto", "once", "queue", "x" * 65, "x" * 300, "é", "a/b"),
    *([], [1], ["x"], ["text"], ["x"] * 5, [[]], [{}], [None], ["message.output_text.logprobs"]),
    *({}, {"a": "b"}, {"a": 1}, {"x" * 65: "b"}, {"id": "x"}, {"type": []}, {"type": "function"}),
    *({"effort": "low"}, {"effort": "odd"}, {"effort": None}, {"verbosity": 1}, {"format": {"type": "text"}}),
    *({"format": {"type": "json_schema"}}, {"include_usage": True}, {"include_obfuscation": 1}),
    *(FUNCTION, {**FUNCTION, "name": ""}, {"type": "allowed_tools", "mode": "auto", "tools": [FUNCTION]}),
    *({"type": "allowed_tools", "mode": "auto", "tools": []}, {"type": "web_search"}),
    *([FUNCTION], [{**FUNCTION, "name": "a b"}], [{**FUNCTION, "strict": 1}], [{"type": "web_search"}]),
    [{"type": "custom", "name": "x", "format": GRAMMAR}],
    [{"type": "custom", "name": "x", "format": {"type": "grammar"}}],
    [{"type": "mcp", "server_label": "hermes", "allowed_tools": ["a"], "require_approval": "never"}],
    [{"type": "mcp", "server_label": "hermes", "allowed_tools": 1}],
    [{"type": "mcp", "server_label": "hermes", "require_approval": {"always": {"tool_names": [1]}}}],
    *([{"type": "compaction"}], [{"type": "compaction", "compact_threshold": 999}]),
    [{"type": "compaction", "compact_threshold": 1000.0}],
    *([MESSAGE], [{**MESSAGE, "role": "tool"}], [{**MESSAGE, "content": []}], [{**MESSAGE, "phase": 1}]),
    [{"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}],
    [{"role": "user", "content": [{"type": "refusal", "refusal": "no"}]}],
    [{"role": "user", "content": [{"type": "input_image", "image_url": "https://x.example/y"}]}],
    [{"role": "user", "content": [{"type": "input_image", "image_url": "https:///y"}]}],
    [{"role": "user", "content": [{"type": "input_image", "image_url": "https://x", "detail": "odd"}]}],
    [{"type": "function_call", "call_id": "c", "name": "n", "arguments": "{}"}],
    [{"type": "function_call", "call_id": "", "name": "n", "arguments": "{}"}],
    [{"type": "function_call_output", "call_id": "c", "output": [{"type": "text", "text": "t"}]}],
    [{"type": "function_call_output", "call_id": "c", "output": None}],
    [{"type": "mcp_call", "server_label": "s", "name": "n", "arguments": "{}", "error": 1}],
    [{"type": "reasoning", "summary": [{"type": "summary_text", "text": "t"}]}],
    [{"type": "reasoning", "summary": [{"type": "odd", "text": "t"}]}],
    *([{"type": "web_search_call", "id": 5}], [{"type": "odd"}]),
]


def refused_param(field: Field[Any], value: Any) -> str | None:
    try:
        field(value, "field")
    except InvalidRequest as refusal:
        return str(refusal.param)
    return None


@pytest.mark.parametrize("name", FIELDS)
def test_the_reader_and_the_schema_accept_the_same_values(name: str) -> None:
    field = FIELDS[name]
    schema = {"components": document()["components"], "$ref": "#/schema", "schema": field.schema}
    validator = Draft202012Validator(schema)
    for value in VALUES:
        param = refused_param(field, value)
        assert (param is None) == validator.is_valid(value), value
        assert param is None or param.startswith("field"), value
