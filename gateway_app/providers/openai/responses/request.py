"""A call as the request of OpenAI's Responses API."""

from typing import Any, cast

from gateway_app.agent.model_call import ENCRYPTED_REASONING, MODEL_PARAMETERS, ModelCall
from gateway_app.providers.openai.call_ids import accepted_ids
from gateway_app.providers.openai.client import Opening, Upstream, UpstreamClient
from gateway_app.providers.openai.extra_fields import chosen_fields
from gateway_app.providers.openai.message_order import with_one_system_message, with_placed_notes
from gateway_app.providers.openai.state import identity_of, usable_state
from responses_app.protocol.items import (
    CALLS,
    COMPACTION_TRIGGER,
    OUTPUTS,
    STATE,
    Content,
    ContentPart,
    Item,
    without_fields,
)

# The upstream's own fields of a call, which go back with it.
CALL_CONTEXT = ("async", "caller", "namespace")
CONTEXT_STATE = "call_context"  # where the state of an item has them
_OUTPUT_CONTEXT = ("caller", "name", "namespace")
# Items whose state the upstream requires; of other kinds it may be the server's own.
WITH_STATUS = frozenset(
    {
        "apply_patch_call",
        "apply_patch_call_output",
        "code_interpreter_call",
        "computer_call",
        "file_search_call",
        "image_generation_call",
        "local_shell_call",
        "program_output",
        "web_search_call",
    }
)
# The fields of an item that are sent back: the server's own ids and states mean nothing to it.
_ITEM_FIELDS = {
    "function_call": ("type", "call_id", "name", "arguments", *CALL_CONTEXT),
    "function_call_output": ("type", "call_id", "output", *_OUTPUT_CONTEXT),
    "custom_tool_call": ("type", "call_id", "name", "input", *CALL_CONTEXT),
    "custom_tool_call_output": ("type", "call_id", "output", "caller"),
}
CALL_ID_PATTERN = r".{1,64}"
_NAMED_TOOL_TYPES = ("function", "custom", "mcp")


def open_responses(
    client: UpstreamClient, body: dict[str, Any], headers: dict[str, Any]
) -> Opening:
    return client.open("responses", {"store": False} | body, headers)


def responses_body(call: ModelCall, upstream: Upstream) -> dict[str, Any]:
    instructions, items = call.instructions, call.items
    if not upstream.preset.takes_system_items:
        instructions, items = with_one_system_message(instructions, items)
    body = _extra_fields(call, upstream)
    body["input"] = _input_items(call, with_placed_notes(items), identity_of(upstream))
    for name in MODEL_PARAMETERS:
        value = call.parameters.get(name)
        if value is not None and name != "parallel_tool_calls":
            body[name] = value
    # Always: the next turn needs it, whether the client asks for it or not.
    if not call.wants_encrypted_reasoning:
        body["include"] = [*body.get("include", ()), ENCRYPTED_REASONING]
    if instructions:
        body["instructions"] = instructions
    if call.max_output_tokens is not None:
        body["max_output_tokens"] = call.max_output_tokens
    body |= _tool_fields(call)
    return upstream.with_options(body, "max_output_tokens", call.answer_room())


def _extra_fields(call: ModelCall, upstream: Upstream) -> dict[str, Any]:
    preset, mode = upstream.preset, upstream.api_mode
    fields = chosen_fields(call.chat_extras, preset, mode, is_chat_request=True)
    return fields | chosen_fields(call.extras, preset, mode, is_chat_request=False)


def _tool_fields(call: ModelCall) -> dict[str, Any]:
    tools = [_tool(spec, call) for spec in call.tool_specs()]
    tools.extend(call.hosted_tools)
    if not tools:
        return {}
    fields: dict[str, Any] = {"tools": tools, "tool_choice": _tool_choice(call)}
    is_parallel = call.parameters.get("parallel_tool_calls")
    if is_parallel is not None:
        fields["parallel_tool_calls"] = is_parallel
    return fields


def _tool(spec: dict[str, Any], call: ModelCall) -> dict[str, Any]:
    if spec["type"] != "function":
        return spec
    # Left out, strict means true to OpenAI, and most schemas are not written for that.
    return spec | {"name": call.wire_name(spec["name"]), "strict": bool(spec.get("strict"))}


def _tool_choice(call: ModelCall) -> Any:
    choice = call.tool_choice
    if not isinstance(choice, dict):
        return choice
    allowed = call.allowed_tool_names()
    if allowed is None:
        if call.is_choice_of_upstream:
            return choice
        return choice | {"name": call.wire_name(choice["name"])}
    tools = []
    for spec in call.tool_specs():
        if spec["name"] in allowed:
            tools.append({"type": spec["type"], "name": call.wire_name(spec["name"])})
    for entry in choice.get("tools", ()):
        if entry["type"] not in _NAMED_TOOL_TYPES:
            tools.append(entry)
    return {"type": "allowed_tools", "mode": call.choice_mode, "tools": tools}


def _input_items(call: ModelCall, items: list[Item], identity: str) -> list[Item]:
    sent: list[Item] = []
    contexts: dict[str, dict[str, Any]] = {}  # by call id
    for index, item in enumerate(items, 1):
        kind = item.get("type", "message")
        if kind == COMPACTION_TRIGGER and index < len(items):
            continue  # it was for an earlier request: upstreams take it as the last item only
        if kind == "message":
            sent.append(_message(item))
        elif kind == "reasoning":
            sent += _reasoning(item, identity)
        elif kind in WITH_STATUS:
            sent.append(without_fields(item, "id", STATE))
        elif kind not in _ITEM_FIELDS:  # a kind that only the client and this upstream know
            sent.append(without_fields(item, "id", "status", STATE))
        else:
            given = cast(dict[str, Any], item)
            fields = {name: given[name] for name in _ITEM_FIELDS[kind] if name in given}
            if kind in CALLS:
                context = (usable_state(item, identity) or {}).get(CONTEXT_STATE, {})
                contexts[item["call_id"]] = context
                fields = context | fields | {"name": call.wire_name(item["name"])}
            elif kind in OUTPUTS:
                fields["output"] = _output(item["output"])
                if "caller" in contexts.get(item["call_id"], {}):
                    fields.setdefault("caller", contexts[item["call_id"]]["caller"])
            sent.append(cast(Item, fields))
    return _with_accepted_ids(sent)


def _with_accepted_ids(items: list[Item]) -> list[Item]:
    ids = accepted_ids([item["call_id"] for item in items if item.get("call_id")], CALL_ID_PATTERN)
    sent: list[Item] = []
    for item in items:
        if item.get("call_id"):
            item = item | {"call_id": ids[item["call_id"]]}
        sent.append(item)
    return sent


def _output(output: Content | None) -> Content | None:
    """A text alone is sent as a string, in every request: stored ones are lists of one part."""
    if isinstance(output, list) and len(output) == 1:
        part = output[0]
        if part["type"] == "input_text" and "prompt_cache_breakpoint" not in part:
            return part["text"]
    return output


def _reasoning(item: Item, identity: str) -> list[Item]:
    """Only what this provider encrypted goes back to it.

    Raw reasoning does not: servers demand their own id with it, or refuse it.
    """
    state = usable_state(item, identity)
    if state is None:
        return []
    encrypted = state.get("encrypted_content") or item.get("encrypted_content")
    if not encrypted:
        return []
    summary = item.get("summary") or []
    return [{"type": "reasoning", "summary": summary, "encrypted_content": encrypted}]


def _message(item: Item) -> Item:
    message: Item = {
        "type": "message",
        "role": item["role"],
        "content": _content(item["content"], item["role"]),
    }
    if item.get("phase"):
        message["phase"] = item["phase"]
    return message


def _content(content: Content, role: str) -> Content:
    if isinstance(content, str):
        return content
    text_type = "input_text"
    if role == "assistant":
        text_type = "output_text"
    parts: list[ContentPart] = []
    for part in content:
        if "text" not in part:
            parts.append(part)
            continue
        sent: ContentPart = {"type": text_type, "text": part["text"]}
        if "prompt_cache_breakpoint" in part:
            sent["prompt_cache_breakpoint"] = part["prompt_cache_breakpoint"]
        parts.append(sent)
    return parts
