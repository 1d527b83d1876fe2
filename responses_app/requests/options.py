"""The structured parameters of a request: tools, formats, reasoning and the like."""

import re
from typing import Any

from responses_app.protocol.errors import InvalidRequest
from responses_app.requests.fields import (
    an_object,
    array,
    boolean,
    choice,
    integer,
    optional,
    short_text,
    text,
    wrong_type,
)
from responses_app.requests.tools import read_mcp

MAX_TOOLS = 512
MAX_TOKENS = 2**31 - 1
MIN_COMPACT_TOKENS = 1000
CLIENT_TOOLS = ("function", "custom")  # run by the client, which gets the calls
TOOL_NAME = r"[A-Za-z0-9_.-]{1,128}"
_TOOL_NAME = re.compile(TOOL_NAME)
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh")
SUMMARIES = ("auto", "concise", "detailed")
VERBOSITIES = ("low", "medium", "high")
INCLUDES = (
    "file_search_call.results",
    "web_search_call.results",
    "web_search_call.action.sources",
    "message.input_image.image_url",
    "computer_call_output.output.image_url",
    "code_interpreter_call.outputs",
    "reasoning.encrypted_content",
    "message.output_text.logprobs",
)


def tools(value: Any, name: str) -> list[dict[str, Any]]:
    """The client's own tools in full; of any other kind only the type is ours to check."""
    given = array(value, name, "an array of tools")
    if len(given) > MAX_TOOLS:
        raise InvalidRequest(f"{name} may hold at most {MAX_TOOLS} tools.", param=name)
    read = [_tool(an_object(tool, f"{name}[{n}]"), f"{name}[{n}]") for n, tool in enumerate(given)]
    names = client_tool_names(read)
    for n, tool in enumerate(read):
        if tool["type"] in CLIENT_TOOLS and names.count(tool["name"]) > 1:
            raise InvalidRequest(
                f"{name} holds two tools named {tool['name']!r}.", param=f"{name}[{n}].name"
            )
    return read


def client_tool_names(tools: list[dict[str, Any]]) -> list[str]:
    return [tool["name"] for tool in tools if tool["type"] in CLIENT_TOOLS]


def _tool(tool: dict[str, Any], name: str) -> dict[str, Any]:
    kind = text(tool.get("type"), f"{name}.type")
    if kind == "mcp":
        read_mcp(tool, name)
    if kind not in CLIENT_TOOLS:
        return tool
    if not _TOOL_NAME.fullmatch(text(tool.get("name"), f"{name}.name")):
        raise InvalidRequest(
            f"{name}.name must have 1 to 128 letters, digits, dots, dashes or underscores.",
            param=f"{name}.name",
        )
    description = optional(text)(tool.get("description"), f"{name}.description")
    if kind == "custom":
        optional(_custom_format)(tool.get("format"), f"{name}.format")
        return tool
    return {
        **tool,
        "description": description,
        "parameters": optional(an_object)(tool.get("parameters"), f"{name}.parameters"),
        "strict": optional(boolean)(tool.get("strict"), f"{name}.strict"),
    }


def _custom_format(value: Any, name: str) -> None:
    given = an_object(value, name)
    if choice("text", "grammar")(given.get("type"), f"{name}.type") == "grammar":
        choice("lark", "regex")(given.get("syntax"), f"{name}.syntax")
        text(given.get("definition"), f"{name}.definition")


def tool_choice(value: Any, name: str) -> Any:
    if isinstance(value, str):
        return choice("none", "auto", "required")(value, name)
    chosen = an_object(value, name)
    kind = text(chosen.get("type"), f"{name}.type")
    if kind in CLIENT_TOOLS:
        short_text(128)(chosen.get("name"), f"{name}.name")
    elif kind == "allowed_tools":
        choice("auto", "required")(chosen.get("mode"), f"{name}.mode")
        allowed = chosen.get("tools")
        if not isinstance(allowed, list) or not allowed:
            raise wrong_type(f"{name}.tools", "an array of tools")
        for n, tool in enumerate(allowed):
            _allowed_tool(an_object(tool, f"{name}.tools[{n}]"), f"{name}.tools[{n}]")
    else:
        raise InvalidRequest(
            f"{name}.type {kind!r} is not supported.", param=f"{name}.type", code="invalid_value"
        )
    return chosen


def _allowed_tool(tool: dict[str, Any], name: str) -> None:
    if text(tool.get("type"), f"{name}.type") in CLIENT_TOOLS:
        short_text(128)(tool.get("name"), f"{name}.name")


def named_tools(chosen: Any) -> list[str]:
    """The client's tools that a tool choice names."""
    if not isinstance(chosen, dict):
        return []
    entries = chosen["tools"] if chosen["type"] == "allowed_tools" else [chosen]
    return [entry["name"] for entry in entries if entry["type"] in CLIENT_TOOLS]


def text_options(value: Any, name: str) -> dict[str, Any]:
    given = an_object(value, name)
    format_ = optional(_format)(given.get("format"), f"{name}.format")
    verbosity = optional(choice(*VERBOSITIES))(given.get("verbosity"), f"{name}.verbosity")
    return {**given, "format": format_ or {"type": "text"}, "verbosity": verbosity or "medium"}


def _format(value: Any, name: str) -> dict[str, Any]:
    given = an_object(value, name)
    kind = choice("text", "json_object", "json_schema")(given.get("type"), f"{name}.type")
    if kind == "json_schema":
        short_text(64)(given.get("name"), f"{name}.name")
        an_object(given.get("schema"), f"{name}.schema")
    return given


def reasoning(value: Any, name: str) -> dict[str, Any]:
    given = an_object(value, name)
    return {
        **given,
        "effort": optional(choice(*EFFORTS))(given.get("effort"), f"{name}.effort"),
        "summary": optional(choice(*SUMMARIES))(given.get("summary"), f"{name}.summary"),
    }


def include(value: Any, name: str) -> list[str]:
    given = array(value, name, "an array of strings")
    return [choice(*INCLUDES)(entry, f"{name}[{n}]") for n, entry in enumerate(given)]


def stream_options(value: Any, name: str) -> dict[str, Any]:
    given = an_object(value, name)
    optional(boolean)(given.get("include_obfuscation"), f"{name}.include_obfuscation")
    return given


def conversation(value: Any, name: str) -> str:
    """An id or a name, bare or as ``{"id": …}``."""
    if isinstance(value, dict):
        return str(short_text(200)(value.get("id"), f"{name}.id"))
    return str(short_text(200)(value, name))


def context_management(value: Any, name: str) -> list[dict[str, Any]]:
    """How the server keeps the context short: there is one way, and it is asked for at most once."""
    entries = array(value, name, "an array of objects")
    if len(entries) > 1:
        raise InvalidRequest(f"{name} may hold one entry.", param=f"{name}[1]")
    threshold = optional(integer(MIN_COMPACT_TOKENS, MAX_TOKENS))
    for n, given in enumerate(entries):
        entry = an_object(given, f"{name}[{n}]")
        choice("compaction")(entry.get("type"), f"{name}[{n}].type")
        threshold(entry.get("compact_threshold"), f"{name}[{n}].compact_threshold")
    return entries
