"""Tools, how a request chooses among them, and the format of its answer."""

from responses_app.requests.json_schema import (
    BOOLEAN,
    OPEN_OBJECT,
    STRING,
    Schema,
    any_of,
    array_of,
    const,
    described,
    enum,
    loose,
    request_object,
    shape,
    string,
    union,
)
from responses_app.requests.options import CLIENT_TOOLS, TOOL_NAME

CHOICES = ("none", "auto", "required")
MODES = ("auto", "required")
APPROVALS = ("always", "never")
MAX_CHOSEN_CHARS = 128
MAX_FORMAT_CHARS = 64

_NAME = string("Letters, digits, dots, dashes and underscores.", pattern=f"^{TOOL_NAME}$")
_CHOSEN: Schema = {"type": "string", "minLength": 1, "maxLength": MAX_CHOSEN_CHARS}
_NAMES = request_object({"tool_names": array_of(STRING)})
_GRAMMAR = {"syntax": enum(("lark", "regex")), "definition": STRING}


def _format(grammar: Schema) -> Schema:
    return any_of(
        loose(shape({"type": const("text")})),
        {"allOf": [loose(shape({"type": const("grammar")})), grammar]},
    )


_DESCRIBED: dict[str, Schema] = {"name": _NAME, "description": STRING}
FUNCTION = request_object({**_DESCRIBED, "parameters": OPEN_OBJECT, "strict": BOOLEAN}, ("name",))
CUSTOM = request_object({**_DESCRIBED, "format": _format(loose(shape(_GRAMMAR)))}, ("name",))
MCP = request_object(
    {
        "server_label": string("hermes, a configured MCP server, or your name for server_url."),
        "server_url": STRING,
        "connector_id": STRING,
        "allowed_tools": any_of(array_of(STRING), _NAMES),
        "require_approval": any_of(
            enum(APPROVALS), request_object(dict.fromkeys(APPROVALS, _NAMES))
        ),
    },
    ("server_label",),
)
OTHER = loose(shape({"type": {"type": "string", "not": {"enum": [*CLIENT_TOOLS, "mcp"]}}}))
_KNOWN: dict[str, Schema] = {"function": FUNCTION, "custom": CUSTOM, "mcp": MCP}
TOOL = described(
    any_of(*union("type", _KNOWN)["oneOf"], OTHER),
    "function and custom are yours to run; mcp asks for the server's own.",
)
_ALLOWED = any_of(
    *union("type", dict.fromkeys(CLIENT_TOOLS, loose(shape({"name": _CHOSEN}))))["oneOf"],
    loose(shape({"type": {"type": "string", "not": {"enum": list(CLIENT_TOOLS)}}})),
)
_ALLOWED_TOOLS = {"mode": enum(MODES), "tools": array_of(_ALLOWED, minItems=1)}
TOOL_CHOICE = any_of(
    enum(CHOICES),
    *union(
        "type",
        {
            **dict.fromkeys(CLIENT_TOOLS, loose(shape({"name": _CHOSEN}))),
            "allowed_tools": loose(shape(_ALLOWED_TOOLS)),
        },
    )["oneOf"],
)
_JSON_SCHEMA: dict[str, Schema] = {
    "name": {"type": "string", "minLength": 1, "maxLength": MAX_FORMAT_CHARS},
    "schema": OPEN_OBJECT,
}
_PLAIN_FORMATS = {"text": loose(shape({})), "json_object": loose(shape({}))}
FORMAT = union("type", {**_PLAIN_FORMATS, "json_schema": loose(shape(_JSON_SCHEMA))})


# -- with the level that chat completions have around them; the server takes both forms --
def _nested(kind: str, inner: Schema) -> Schema:
    return loose(shape({"type": const(kind), kind: inner}))


_NESTED_GRAMMAR = loose(shape({"grammar": loose(shape(_GRAMMAR))}))
_NESTED_CUSTOM = request_object(
    {
        "name": _NAME,
        "description": STRING,
        "format": _format(any_of(loose(shape(_GRAMMAR)), _NESTED_GRAMMAR)),
    },
    ("name",),
)
_NESTED_NAMES = [_nested(kind, loose(shape({"name": _CHOSEN}))) for kind in CLIENT_TOOLS]
_NESTED_ALLOWED = {
    "mode": enum(MODES),
    "tools": array_of(any_of(_ALLOWED, *_NESTED_NAMES), minItems=1),
}
CHAT_TOOL = any_of(_nested("function", FUNCTION), _nested("custom", _NESTED_CUSTOM), TOOL)
_CHAT_ALLOWED = _nested("allowed_tools", loose(shape(_NESTED_ALLOWED)))
CHAT_CHOICE = any_of(TOOL_CHOICE, *_NESTED_NAMES, _CHAT_ALLOWED)
CHAT_FORMAT = any_of(FORMAT, _nested("json_schema", loose(shape(_JSON_SCHEMA))))
