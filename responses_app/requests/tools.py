"""``tools``: those that the client runs, and those that it asks the server to run."""

import re
from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string

from responses_app.protocol.errors import InvalidRequest
from responses_app.protocol.items import (
    ADDITIONAL_TOOLS,
    APPROVAL_REQUEST,
    APPROVAL_RESPONSE,
    Item,
)
from responses_app.requests.fields import Field, an_object, boolean, choice, text
from responses_app.requests.json_schema import STRING
from responses_app.requests.structures import (
    any_type,
    array,
    object_of,
    object_or,
    one_of_types,
    texts,
)
from responses_app.services.lifecycle.approval_requests import is_answer

Tool = dict[str, Any]

MAX_TOOLS = 512
CLIENT_TOOLS = ("function", "custom")  # the client runs them and gets the calls
_TOOL_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")


# -- tools of the client ----------------------------------------------------------------
def _read_name(value: Any, name: str) -> str:
    given = text(value, name)
    if not _TOOL_NAME.fullmatch(given):
        raise InvalidRequest(
            f"{name} must have 1 to 128 letters, digits, dots, dashes or underscores.", param=name
        )
    return given


def _with_all_keys(tool: Tool) -> Tool:
    """A response repeats a function with every key of its definition."""
    complete = dict(tool)
    for key in ("description", "parameters", "strict"):
        complete.setdefault(key, None)
    return complete


_tool_name = Field(_read_name, STRING | {"pattern": f"^{_TOOL_NAME.pattern}$"}).described(
    "Letters, digits, dots, dashes and underscores."
)
grammar = object_of(
    {"syntax": choice("lark", "regex"), "definition": text}, ("syntax", "definition")
)
function = object_of(
    {"name": _tool_name, "description": text, "parameters": an_object, "strict": boolean},
    ("name",),
).then(_with_all_keys)
_custom_format = one_of_types({"text": object_of({}), "grammar": grammar})
CUSTOM_FIELDS: dict[str, Field[Any]] = {
    "name": _tool_name,
    "description": text,
    "format": _custom_format,
}
custom = object_of(CUSTOM_FIELDS, ("name",))

# -- tools of the server ----------------------------------------------------------------
_tool_names = object_of({"tool_names": texts})
_mcp_fields = object_of(
    {
        "server_label": text.described(
            "hermes, a configured MCP server, or your name for server_url."
        ),
        "server_url": text,
        "connector_id": text,
        "require_approval": object_or(
            choice("always", "never"),
            object_of({"always": _tool_names, "never": _tool_names}),
        ),
        "allowed_tools": object_or(texts, _tool_names),
    },
    ("server_label",),
)


def _read_mcp(value: Any, name: str) -> Tool:
    """A server that this one does not know needs an address."""
    tool = _mcp_fields(value, name)
    label = tool["server_label"]
    is_known = label in settings.HERMES_TOOL_LABELS
    if not is_known and not (tool.get("server_url") or tool.get("connector_id")):
        known = ", ".join(settings.HERMES_TOOL_LABELS)
        raise InvalidRequest(
            f"{name}.server_label is {label!r}; this server knows {known}.",
            param=f"{name}.server_label",
        )
    allowed = tool.get("allowed_tools")
    if is_known and isinstance(allowed, dict) and allowed.get("read_only") is not None:
        raise InvalidRequest(
            f"{name}.allowed_tools.read_only is not supported; name the tools in tool_names.",
            param=f"{name}.allowed_tools.read_only",
            code="unsupported_value",
        )
    return tool


# -- all tools --------------------------------------------------------------------------
tool = any_type(
    {"function": function, "custom": custom, "mcp": Field(_read_mcp, _mcp_fields.schema)}
).described("function and custom are yours to run; mcp asks for the server's own.")
_tools = array(tool, "tools", max_items=MAX_TOOLS)


def _read_tools(value: Any, name: str) -> list[Tool]:
    read = _tools(value, name)
    names = client_tool_names(read)
    for index, tool in enumerate(read):
        if tool["type"] in CLIENT_TOOLS and names.count(tool["name"]) > 1:
            raise InvalidRequest(
                f"{name} holds two tools named {tool['name']!r}.", param=f"{name}[{index}].name"
            )
    return read


tools = Field(_read_tools, _tools.schema)


def client_tool_names(tools: list[Tool]) -> list[str]:
    return [tool["name"] for tool in tools if tool["type"] in CLIENT_TOOLS]


def added_tools(items: Sequence[Item]) -> list[Tool]:
    """Those that items add to the tools of the request."""
    added: list[Tool] = []
    for item in items:
        if item["type"] == ADDITIONAL_TOOLS:
            added += item["tools"]
    return added


def is_own(tool: Tool) -> bool:
    """Whether this server runs it, or an MCP server that it is connected to."""
    return tool["type"] == "mcp" and tool.get("server_label") in settings.HERMES_TOOL_LABELS


def is_upstreams(tool: Tool) -> bool:
    """Whether neither the client nor this server runs it."""
    return tool["type"] not in CLIENT_TOOLS and not is_own(tool)


def hosted_tool_names(tools: list[Tool], name: str) -> list[str]:
    """The paths of the tools that only an upstream may have."""
    hosted: list[str] = []
    for index, tool in enumerate(tools):
        if is_upstreams(tool):
            hosted.append(f"{name}[{index}] ({tool['type']})")
    return hosted


def is_own_call(item: Item) -> bool:
    """Whether it is of a call of such a tool, which a model gets as the function call it made."""
    if item["type"] == APPROVAL_RESPONSE:
        return is_answer(item)
    is_call = item["type"] in ("mcp_call", APPROVAL_REQUEST)
    return is_call and item["server_label"] in settings.HERMES_TOOL_LABELS


def server_tool_names(model: str, tools: list[Tool] | None) -> set[str]:
    """The tools that the server offers for a request; only the gateway has the list."""
    names: set[str] = import_string(settings.HERMES_TOOL_NAMES)(model, tools)
    return names
