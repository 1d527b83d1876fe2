"""``tool_choice``: which tools the model may or must call."""

from collections.abc import Sequence
from typing import Any

from django.conf import settings

from responses_app.protocol.errors import InvalidRequest
from responses_app.requests.fields import Field, choice, short_text, text
from responses_app.requests.structures import any_type, array, object_of, object_or
from responses_app.requests.tools import (
    CLIENT_TOOLS,
    Tool,
    client_tool_names,
    is_upstreams,
    server_tool_names,
)

chosen_name = object_of({"name": short_text(128)}, ("name",))
allowed_mode = choice("auto", "required")
_word = choice("none", "auto", "required")
_named: dict[str, Field[Tool]] = dict.fromkeys(CLIENT_TOOLS, chosen_name)
allowed_tool = any_type(_named)
_allowed_tools = object_of(
    {"mode": allowed_mode, "tools": array(allowed_tool, "tools", is_filled=True)},
    ("mode", "tools"),
)
_of_server = object_of({"server_label": text, "name": text}, ("server_label",))
_OBJECTS = _named | {"allowed_tools": _allowed_tools, "mcp": _of_server}
tool_choice = object_or(_word, any_type(_OBJECTS)).described(
    "A type other than function, custom, mcp and allowed_tools is for upstreams that have such tools."
)


def is_hosted_choice(chosen: Any) -> bool:
    """Whether the choice forces a tool that only an upstream may have."""
    if not isinstance(chosen, dict) or chosen["type"] in (*CLIENT_TOOLS, "allowed_tools"):
        return False
    return chosen["type"] != "mcp" or chosen["server_label"] not in settings.HERMES_TOOL_LABELS


def check_choice(
    chosen: Any, tools: list[Tool] | None, model: str, added: Sequence[Tool] = ()
) -> None:
    """The client or the server must offer the tools that the choice forces.

    ``added`` are the tools that items of the request add.
    """
    if chosen in (None, "auto", "none"):
        return
    offered = [*(tools or ()), *added]
    if is_hosted_choice(chosen):
        _check_hosted(chosen, offered)
        return
    of_server = server_tool_names(model, tools)
    names = set(client_tool_names(offered)) | of_server
    if chosen == "required" and not names and not any(map(is_upstreams, offered)):
        raise InvalidRequest(
            "tool_choice is 'required', but there is no tool to call.", param="tool_choice"
        )
    if isinstance(chosen, dict) and chosen["type"] == "mcp":
        _check_of_server(chosen, of_server)
    for name in _named_tools(chosen):
        if name not in names:
            raise InvalidRequest(
                f"tool_choice names {name!r}, which is not in tools.", param="tool_choice"
            )


def _check_hosted(chosen: Tool, offered: list[Tool]) -> None:
    kind = chosen["type"]
    if kind == "mcp":
        labels = [tool["server_label"] for tool in offered if tool["type"] == "mcp"]
        if chosen["server_label"] in labels:
            return
        raise InvalidRequest(
            f"tool_choice.server_label is {chosen['server_label']!r}, which no tool has.",
            param="tool_choice.server_label",
        )
    # A choice and its tool may have different names: computer_use chooses the tool computer.
    if not any(map(is_upstreams, offered)):
        raise InvalidRequest(
            f"tool_choice.type is {kind!r}, but tools has no such tool.",
            param="tool_choice.type",
            code="invalid_value",
        )


def _check_of_server(chosen: Tool, names: set[str]) -> None:
    """Tools of an MCP server are named with its label in front, and chosen with or without it."""
    label = chosen["server_label"]
    name = chosen.get("name")
    if name is None:
        is_offered = any(tool.startswith(f"{label}.") for tool in names)
        if is_offered or (names and label == settings.HERMES_TOOL_LABELS[0]):
            return
    elif name in names or f"{label}.{name}" in names:
        return
    raise InvalidRequest(
        f"tool_choice names {name or label!r}, which this request does not offer.",
        param="tool_choice",
    )


def _named_tools(chosen: Any) -> list[str]:
    """The client's tools that a choice names."""
    if not isinstance(chosen, dict):
        return []
    entries = [chosen]
    if chosen["type"] == "allowed_tools":
        entries = chosen["tools"]
    return client_tool_names(entries)
