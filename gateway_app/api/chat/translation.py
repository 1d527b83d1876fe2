"""Fields in the words of Chat Completions and of Responses; errors are told in those of the client."""

import re
from typing import Any

from gateway_app.api.chat.messages import Sent
from responses_app.protocol.errors import InvalidRequest
from responses_app.requests.fields import wrong_type
from responses_app.requests.options import LOGPROBS

Fields = dict[str, Any]

# -- to Responses -----------------------------------------------------------------------
# Fields that both call by the same name.
SAME = (
    *("metadata", "model", "parallel_tool_calls", "prompt_cache_key", "safety_identifier"),
    *("service_tier", "store", "stream", "temperature", "top_p", "user"),
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


def in_responses_words(given: Fields) -> Fields:
    """The fields that Responses knows; a value of the wrong type stays as it is, for its reader to refuse."""
    fields = {name: given[name] for name in SAME if name in given}
    if limits := [given[name] for name in _LIMITS if name in given]:
        fields["max_output_tokens"] = limits[0]
    if len({repr(limit) for limit in limits}) > 1:
        raise InvalidRequest(
            "max_tokens and max_completion_tokens differ; send one of them.", param="max_tokens"
        )
    if "reasoning_effort" in given:
        fields["reasoning"] = {"effort": given["reasoning_effort"]}
    if "tools" in given:
        tools = given["tools"]
        fields["tools"] = [_tool(tool) for tool in tools] if isinstance(tools, list) else tools
    if "tool_choice" in given:
        fields["tool_choice"] = _choice(given["tool_choice"])
    if text := _text(given):
        fields["text"] = text
    if given.get("logprobs") is True:
        fields["include"] = [LOGPROBS]
        fields |= {name: given[name] for name in ("top_logprobs",) if name in given}
    return fields


def _flat(value: Any, *kinds: str) -> Any:
    """``{"type": "function", "function": {...}}`` without its inner level."""
    kind = value.get("type") if isinstance(value, dict) else None
    inner = value.get(kind) if kind in kinds else None
    return {**inner, "type": kind} if isinstance(inner, dict) else value


def _tool(tool: Any) -> Any:
    flat = _flat(tool, "function", "custom")
    if isinstance(flat, dict) and flat.get("type") == "custom":
        return {**flat, "format": _flat(flat.get("format"), "grammar")}
    return flat


def _choice(choice: Any) -> Any:
    flat = _flat(choice, "function", "custom", "allowed_tools")
    if isinstance(flat, dict) and isinstance(flat.get("tools"), list):
        return {**flat, "tools": [_flat(tool, "function", "custom") for tool in flat["tools"]]}
    return flat


def _text(given: Fields) -> Fields:
    fields = {"verbosity": given["verbosity"]} if "verbosity" in given else {}
    wanted = given.get("response_format")
    if wanted is None:
        return fields
    if not isinstance(wanted, dict):
        raise wrong_type("response_format", "an object")
    return {**fields, "format": _flat(wanted, "json_schema")}


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


def in_chat_words(error: InvalidRequest, given: Fields, sent: list[Sent]) -> InvalidRequest:
    """The same error, with the field that the client knows."""
    param = error.param or ""
    named = _of_message(param, sent) or _of_field(param, given)
    message = error.message.replace(param, named) if param else error.message
    return InvalidRequest(message, param=named or None, code=error.code, status=error.status)


def in_chat_names(ignored: tuple[str, ...]) -> tuple[str, ...]:
    """What nothing acts on; only ``logprobs`` becomes an ``include``."""
    return tuple("logprobs" if name.startswith("include[") else name for name in ignored)


def _of_message(param: str, sent: list[Sent]) -> str:
    found = _INPUT.fullmatch(param)
    if found is None or int(found[1]) >= len(sent):
        return ""
    source = sent[int(found[1])]
    kind, field = source.item["type"], found[2] or ""
    names = (
        _OUTPUT_FIELDS
        if kind.endswith("_output")
        else _CALL_FIELDS
        if kind.endswith("_call")
        else {}
    )
    named = names.get(field, field).format(kind="function" if kind == "function_call" else "custom")
    return source.path + (f".{named}" if named else "") + found[3]


def _of_field(param: str, given: Fields) -> str:
    if param == "max_output_tokens":
        return next(name for name in _LIMITS if name in given)
    for pattern, named in _RENAMED:
        if found := pattern.fullmatch(param):
            return (
                found.expand(named).format(kind=_kind(given, found))
                if "{kind}" in named
                else found.expand(named)
            )
    return param


def _kind(given: Fields, found: "re.Match[str]") -> str:
    """The level of a tool or a tool choice that the client wrote around the field."""
    holder = (
        given["tools"][int(found[1])] if found[0].startswith("tools[") else given["tool_choice"]
    )
    return str(holder["type"])
