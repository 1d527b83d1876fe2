"""Items of many kinds, each brought into one shape."""

from typing import Any, cast

from responses_app.protocol.errors import InvalidRequest
from responses_app.protocol.items import (
    ADDITIONAL_TOOLS,
    APPROVAL_REQUEST,
    APPROVAL_RESPONSE,
    ARGUMENTS_OF,
    COMPACTION,
    COMPACTION_TRIGGER,
    CONFIGURATION_UPDATE,
    STATE,
    ContentPart,
    Item,
)
from responses_app.requests.content import content_schema, read_content, tool_output
from responses_app.requests.fields import (
    Field,
    an_object,
    boolean,
    choice,
    short_text,
    text,
    wrong_type,
)
from responses_app.requests.json_schema import (
    NULL,
    OPEN_OBJECT,
    STRING,
    Schema,
    any_of,
    const,
    enum,
    loose,
    request_object,
    shape,
    tagged,
)
from responses_app.requests.structures import array, object_of
from responses_app.requests.tools import tools
from responses_app.services.history.compaction import is_foreign

OTHER_ROLES = ("user", "system", "developer")
ROLES = ("user", "assistant", "system", "developer")
MAX_ID_CHARS = 256
# Kinds that clients send back and only an upstream with the Responses API can use.
KEPT_TYPES = frozenset(
    {
        "apply_patch_call",
        "apply_patch_call_output",
        "code_interpreter_call",
        COMPACTION_TRIGGER,
        "computer_call",
        "computer_call_output",
        CONFIGURATION_UPDATE,
        "file_search_call",
        "image_generation_call",
        "local_shell_call",
        "local_shell_call_output",
        "mcp_approval_request",
        "mcp_approval_response",
        "mcp_call",
        "mcp_list_tools",
        "program",
        "program_output",
        "shell_call",
        "shell_call_output",
        "tool_search_call",
        "tool_search_output",
        "web_search_call",
    }
)
# Fields of calls and outputs that only such an upstream can use.
CALL_CONTEXT = ("async", "caller", "namespace")
OUTPUT_CONTEXT = ("caller", "name", "namespace")
item_id = short_text(MAX_ID_CHARS)


# -- messages ---------------------------------------------------------------------------
_message_fields = object_of({"role": choice(*ROLES), "phase": text}, ("role",))


def message(role: str, content: list[ContentPart]) -> Item:
    return {"type": "message", "status": "completed", "role": role, "content": content}


def _read_message(item: dict[str, Any], name: str) -> Item:
    given = _message_fields(item, name)
    role = given["role"]
    read = message(role, read_content(given.get("content"), role, f"{name}.content"))
    if given.get("phase") is not None:
        read["phase"] = given["phase"]
    return read


def message_schema(part: str, roles: tuple[str, ...], *more: Schema) -> Schema:
    """A message whose content has the parts ``part``; its type may be left out."""
    properties = {
        "type": const("message"),
        "role": enum(roles),
        "content": content_schema(part, *more),
        "phase": STRING,
    }
    return request_object(properties, ("role", "content"))


# -- other items ------------------------------------------------------------------------
def _as_sent(item: dict[str, Any]) -> Item:
    """Kept with every field but an id that is no text: it could not be looked up."""
    kept = dict(item)
    kept.pop(STATE, None)  # only the server puts a state beside an item
    if not isinstance(item.get("id"), str):
        kept.pop("id", None)
    return cast(Item, kept)


def _request(item: dict[str, Any]) -> Item:
    """With its id in another field, too: it becomes an item of this turn's input."""
    kept = _as_sent(item)
    if "id" in kept:
        kept["approval_request_id"] = kept["id"]
    return kept


def _call(item: dict[str, Any]) -> Item:
    kind = item["type"]
    status = "completed"
    if item.get("status") == "incomplete":
        status = "incomplete"
    call = {
        "type": kind,
        "status": status,
        "call_id": item["call_id"],
        "name": item["name"],
        ARGUMENTS_OF[kind]: item[ARGUMENTS_OF[kind]],
    }
    return cast(Item, call | _given(item, CALL_CONTEXT))


def _call_output(item: dict[str, Any]) -> Item:
    output = {
        "type": item["type"],
        "status": "completed",
        "call_id": item["call_id"],
        "output": item["output"],
    }
    return cast(Item, output | _given(item, OUTPUT_CONTEXT))


def _given(item: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: item[name] for name in names if item.get(name) is not None}


def _additional_tools(item: dict[str, Any]) -> Item:
    return {"type": ADDITIONAL_TOOLS, "role": "developer", "tools": item["tools"]}


def _reasoning(item: dict[str, Any]) -> Item:
    read: Item = {"type": "reasoning", "status": "completed", "summary": item.get("summary") or []}
    if item.get("content") is not None:
        read["content"] = item["content"]
    if item.get("encrypted_content") is not None:
        read["encrypted_content"] = item["encrypted_content"]
    return read


def _compaction(item: dict[str, Any]) -> Item:
    compaction = cast(Item, item)
    if is_foreign(compaction):
        return compaction
    return {"type": COMPACTION, "encrypted_content": item["encrypted_content"]}


def _reference(item: dict[str, Any]) -> Item:
    return {"type": "item_reference", "id": item["id"]}


def _read_error(value: Any, name: str) -> Any:
    if not isinstance(value, str | dict):
        raise wrong_type(name, "a string or an object")
    return value


def _text_parts(*kinds: str) -> Field[list[dict[str, Any]]]:
    part = object_of({"type": choice(*kinds), "text": text}, ("type", "text"))
    return array(part, "text parts")


_mcp_call = object_of(
    {
        "server_label": text,
        "name": text,
        "arguments": text,
        "output": text,
        "error": Field(_read_error, any_of(STRING, OPEN_OBJECT)),
    },
    ("server_label", "name", "arguments"),
)
_reasoning_fields = object_of(
    {
        "summary": _text_parts("summary_text"),
        "content": _text_parts("reasoning_text", "text"),  # Codex sends both
        "encrypted_content": text,
    }
)
_CALL: dict[str, Field[Any]] = {
    "call_id": item_id,
    "name": item_id,
    "async": boolean,
    "caller": an_object,
    "namespace": text,
}
_OUTPUT: dict[str, Field[Any]] = {
    "call_id": item_id,
    "output": tool_output,
    "caller": an_object,
    "name": text,
    "namespace": text,
}
_function_call = object_of(_CALL | {"arguments": text}, ("call_id", "name", "arguments"))
_custom_call = object_of(_CALL | {"input": text}, ("call_id", "name", "input"))
_call_output_fields = object_of(_OUTPUT, ("call_id", "output"))
_additional_tools_fields = object_of({"role": choice("developer"), "tools": tools}, ("tools",))
_compaction_fields = object_of(
    {"encrypted_content": text.described("As this server made it for you.")},
    ("encrypted_content",),
)
_reference_fields = object_of({"id": item_id}, ("id",))
_approval_request = object_of(
    {"server_label": text, "name": text, "arguments": text}, ("server_label", "name", "arguments")
)
_approval_response = object_of(
    {"approval_request_id": item_id, "approve": boolean, "reason": text},
    ("approval_request_id", "approve"),
)
_ITEMS: dict[str, Field[Item]] = {
    "function_call": _function_call.then(_call),
    "custom_tool_call": _custom_call.then(_call),
    "function_call_output": _call_output_fields.then(_call_output),
    "custom_tool_call_output": _call_output_fields.then(_call_output),
    "mcp_call": _mcp_call.then(_as_sent),
    APPROVAL_REQUEST: _approval_request.then(_request),
    APPROVAL_RESPONSE: _approval_response.then(_as_sent),
    "reasoning": _reasoning_fields.then(_reasoning),
    COMPACTION: _compaction_fields.then(_compaction),
    ADDITIONAL_TOOLS: _additional_tools_fields.then(_additional_tools),
}


# -- any item ---------------------------------------------------------------------------
def read_item(value: Any, name: str) -> Item:
    item = an_object(value, name)
    kind = _kind_of(item, name)
    if kind == "message":
        return _read_message(item, name)
    if kind == "item_reference":
        return _reference(_reference_fields(item, name))
    if kind in _ITEMS:
        return _ITEMS[kind].read(item, name)
    if kind in KEPT_TYPES:
        return _as_sent(item)
    raise InvalidRequest(
        f"{name}.type is {kind!r}, which this server does not know.",
        param=f"{name}.type",
        code="unsupported_item_type",
    )


def _kind_of(item: dict[str, Any], name: str) -> str:
    given = item.get("type")
    if given is not None:
        return text(given, f"{name}.type")
    if item.keys() <= {"id", "type"}:
        return "item_reference"
    return "message"


def _item_schemas() -> list[Schema]:
    kept = sorted(KEPT_TYPES - _ITEMS.keys())
    schemas = [
        message_schema("InputPart", OTHER_ROLES),
        message_schema("OutputPart", ("assistant",)),
        loose(shape({"type": enum(kept)})),
    ]
    for kind, field in _ITEMS.items():
        schemas.append(tagged(field.schema, "type", kind))
    return schemas


_BARE_REFERENCE = shape({"id": item_id.schema, "type": NULL}, ("type",))
SCHEMAS: dict[str, Schema] = {
    "InputItem": any_of(
        *_item_schemas(),
        tagged(_reference_fields.schema, "type", "item_reference"),
        _BARE_REFERENCE | {"additionalProperties": False},
        description="Any output of a response can be sent back as it is.",
    ),
}
