"""``tool_choice``: which tools the model may or must call."""

from typing import Any

from responses_app.protocol.errors import InvalidRequest
from responses_app.requests.fields import (
    Field,
    an_object,
    choice,
    schemas_of,
    short_text,
    text,
)
from responses_app.requests.json_schema import any_of, union
from responses_app.requests.structures import any_type, array, object_of
from responses_app.requests.tools import (
    CLIENT_TOOLS,
    Tool,
    client_tool_names,
    is_own,
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
_OBJECTS = _named | {"allowed_tools": _allowed_tools}


def _read_choice(value: Any, name: str) -> Any:
    if isinstance(value, str):
        return _word(value, name)
    given = an_object(value, name)
    kind = text(given.get("type"), f"{name}.type")
    if kind not in _OBJECTS:
        raise InvalidRequest(
            f"{name}.type {kind!r} is not supported.", param=f"{name}.type", code="invalid_value"
        )
    return _OBJECTS[kind].read(given, name)


tool_choice = Field(_read_choice, any_of(_word.schema, union("type", schemas_of(_OBJECTS))))


def check_choice(chosen: Any, tools: list[Tool] | None, model: str) -> None:
    """The client or the server must offer the tools that the choice forces."""
    if chosen in (None, "auto", "none"):
        return
    offered = tools or []
    names = set(client_tool_names(offered)) | server_tool_names(model, tools)
    if chosen == "required" and not names and not _has_upstream_tool(offered):
        raise InvalidRequest(
            "tool_choice is 'required', but there is no tool to call.", param="tool_choice"
        )
    for name in _named_tools(chosen):
        if name not in names:
            raise InvalidRequest(
                f"tool_choice names {name!r}, which is not in tools.", param="tool_choice"
            )


def _has_upstream_tool(tools: list[Tool]) -> bool:
    """Whether one of the tools is neither the client's nor this server's."""
    return any(not is_own(tool) and tool["type"] not in CLIENT_TOOLS for tool in tools)


def _named_tools(chosen: Any) -> list[str]:
    """The client's tools that a choice names."""
    if not isinstance(chosen, dict):
        return []
    entries = [chosen]
    if chosen["type"] == "allowed_tools":
        entries = chosen["tools"]
    return client_tool_names(entries)
