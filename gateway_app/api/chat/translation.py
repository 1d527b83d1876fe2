"""Fields and errors between the names of Chat Completions and those of Responses."""

import re
from typing import Any

from gateway_app.api.chat.messages import Fields, SentItem
from responses_app.protocol.errors import InvalidRequest
from responses_app.requests.fields import wrong_type
from responses_app.requests.options import LOGPROBS

# -- to Responses -----------------------------------------------------------------------
# Fields with the same name in both.
SAME = (
    "metadata",
    "model",
    "parallel_tool_calls",
    "prompt_cache_key",
    "safety_identifier",
    "service_tier",
    "store",
    "stream",
    "temperature",
    "top_p",
    "user",
)
_LIMITS = ("max_completion_tokens", "max_tokens")
TRANSLATED = (
    *_LIMITS,
    "logprobs",
    "reasoning_effort",
    "response_format",
    "tool_choice",
    "tools",
    "verbosity",
)


def responses_fields(given: Fields) -> Fields:
    """The fields of Responses. A value of a wrong type stays as it is: its reader rejects it."""
    fields = {name: given[name] for name in SAME if name in given}
    limits = [given[name] for name in _LIMITS if name in given]
    if limits:
        fields["max_output_tokens"] = limits[0]
    if len(limits) == 2 and repr(limits[0]) != repr(limits[1]):
        raise InvalidRequest(
            "max_tokens and max_completion_tokens differ; send one of them.", param="max_tokens"
        )
    if "reasoning_effort" in given:
        fields["reasoning"] = {"effort": given["reasoning_effort"]}
    if "tools" in given:
        fields["tools"] = _tools(given["tools"])
    if "tool_choice" in given:
        fields["tool_choice"] = _tool_choice(given["tool_choice"])
    text = _text(given)
    if text:
        fields["text"] = text
    if given.get("logprobs") is True:
        fields["include"] = [LOGPROBS]
        if "top_logprobs" in given:
            fields["top_logprobs"] = given["top_logprobs"]
    return fields


def _flat(value: Any, *kinds: str) -> Any:
    """``{"type": "function", "function": {...}}`` without its inner level."""
    if not isinstance(value, dict):
        return value
    kind = value.get("type")
    if kind not in kinds or not isinstance(value.get(kind), dict):
        return value
    return value[kind] | {"type": kind}


def _tools(tools: Any) -> Any:
    if not isinstance(tools, list):
        return tools
    flat_tools = []
    for tool in tools:
        flat = _flat(tool, "function", "custom")
        if isinstance(flat, dict) and flat.get("type") == "custom":
            flat = flat | {"format": _flat(flat.get("format"), "grammar")}
        flat_tools.append(flat)
    return flat_tools


def _tool_choice(choice: Any) -> Any:
    flat = _flat(choice, "function", "custom", "allowed_tools")
    if isinstance(flat, dict) and isinstance(flat.get("tools"), list):
        tools = [_flat(tool, "function", "custom") for tool in flat["tools"]]
        return flat | {"tools": tools}
    return flat


def _text(given: Fields) -> Fields:
    fields: Fields = {}
    if "verbosity" in given:
        fields["verbosity"] = given["verbosity"]
    response_format = given.get("response_format")
    if response_format is None:
        return fields
    if not isinstance(response_format, dict):
        raise wrong_type("response_format", "an object")
    text_format = _flat(response_format, "json_schema")
    if text_format.get("type") == "json_schema" and text_format.get("schema") is None:
        text_format = text_format | {"schema": {}}  # without one, any JSON
    fields["format"] = text_format
    return fields


# -- back to Chat Completions -----------------------------------------------------------
_CALL_FIELDS = {
    "call_id": "id",
    "name": "{kind}.name",
    "arguments": "{kind}.arguments",
    "input": "{kind}.input",
}
_OUTPUT_FIELDS = {"call_id": "tool_call_id", "output": "content"}
_INPUT = re.compile(r"input\[(\d+)\](?:\.(\w+))?(.*)")
_RENAMED = (
    (
        re.compile(r"tools\[(\d+)\]\.(name|description|parameters|strict|format)"),
        r"tools[\1].{kind}.\2",
    ),
    (re.compile(r"tool_choice\.(name)"), r"tool_choice.{kind}.\1"),
    (re.compile(r"tool_choice\.(mode|tools.*)"), r"tool_choice.allowed_tools.\1"),
    (re.compile(r"text\.format\.type"), "response_format.type"),
    (re.compile(r"text\.format\.(.+)"), r"response_format.json_schema.\1"),
    (re.compile(r"text\.verbosity"), "verbosity"),
    (re.compile(r"reasoning\.effort"), "reasoning_effort"),
    (re.compile(r"input"), "messages"),
)


def chat_error(error: InvalidRequest, given: Fields, sent: list[SentItem]) -> InvalidRequest:
    """The same error, with the name of the field that the client sent."""
    param = error.param or ""
    named = _message_param(param, sent) or _field_param(param, given)
    message = error.message
    if param:
        message = message.replace(param, named)
    return InvalidRequest(message, param=named or None, code=error.code, status=error.status)


def chat_names(ignored: tuple[str, ...], sent: list[SentItem]) -> list[str]:
    """Ignored fields by their names in chat; only ``logprobs`` becomes an ``include``."""
    names = []
    for name in ignored:
        if name.startswith("include["):
            name = "logprobs"
        names.append(_message_param(name, sent) or name)
    return names


def _message_param(param: str, sent: list[SentItem]) -> str:
    found = _INPUT.fullmatch(param)
    if found is None or int(found[1]) >= len(sent):
        return ""
    source = sent[int(found[1])]
    kind: str = source.item["type"]
    field = found[2] or ""
    if kind.endswith("_output"):
        field = _OUTPUT_FIELDS.get(field, field)
    elif kind.endswith("_call"):
        level = "function" if kind == "function_call" else "custom"
        field = _CALL_FIELDS.get(field, field).format(kind=level)
    if field:
        field = f".{field}"
    return source.path + field + found[3]


def _field_param(param: str, given: Fields) -> str:
    if param == "max_output_tokens":
        return next(name for name in _LIMITS if name in given)
    for pattern, template in _RENAMED:
        found = pattern.fullmatch(param)
        if found is None:
            continue
        named = found.expand(template)
        if "{kind}" in template:
            named = named.format(kind=_level(given, found))
        return named
    return param


def _level(given: Fields, found: "re.Match[str]") -> str:
    """The inner level of a tool or a tool choice, in which the client wrote the field."""
    if found[0].startswith("tools["):
        return str(given["tools"][int(found[1])]["type"])
    return str(given["tool_choice"]["type"])
