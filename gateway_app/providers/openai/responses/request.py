"""A call as the request of OpenAI's Responses API."""

from typing import Any, cast

from gateway_app.agent.model_call import ENCRYPTED_REASONING, MODEL_PARAMETERS, ModelCall
from gateway_app.providers.openai.client import Opening, Upstream, UpstreamClient
from gateway_app.providers.openai.state import identity_of, usable_state
from responses_app.protocol.items import CALLS, STATE, Content, ContentPart, Item, without_fields

# The fields of an item that are sent back: the server's own ids and states mean nothing to it.
_ITEM_FIELDS = {
    "function_call": ("type", "call_id", "name", "arguments"),
    "function_call_output": ("type", "call_id", "output"),
    "custom_tool_call": ("type", "call_id", "name", "input"),
    "custom_tool_call_output": ("type", "call_id", "output"),
}
_NAMED_TOOL_TYPES = ("function", "custom", "mcp")


def open_responses(
    client: UpstreamClient, body: dict[str, Any], headers: dict[str, Any]
) -> Opening:
    # The SDK walks through every item it is given, at 0.2 ms each; an extra body it sends as it is.
    create = client.sdk.responses.with_streaming_response.create
    stream: bool = body["stream"]
    return create(
        model=client.upstream.model,
        stream=stream,
        store=False,
        extra_body=body,
        extra_headers=headers,
    )


def responses_body(call: ModelCall, upstream: Upstream) -> dict[str, Any]:
    body: dict[str, Any] = dict(call.extras)
    body["input"] = _input_items(call, identity_of(upstream))
    for name in MODEL_PARAMETERS:
        value = call.parameters.get(name)
        if value is not None and name != "parallel_tool_calls":
            body[name] = value
    # Always: the next turn needs it, whether the client asked for it or not.
    if not call.wants_encrypted_reasoning:
        body["include"] = [*body.get("include", ()), ENCRYPTED_REASONING]
    if call.instructions:
        body["instructions"] = call.instructions
    if call.max_output_tokens is not None:
        body["max_output_tokens"] = call.max_output_tokens
    tools = [_tool(spec, call) for spec in call.tool_specs()]
    tools.extend(call.hosted_tools)
    if tools:
        body["tools"] = tools
        body["tool_choice"] = _tool_choice(call)
        is_parallel = call.parameters.get("parallel_tool_calls")
        if is_parallel is not None:
            body["parallel_tool_calls"] = is_parallel
    return upstream.with_options(body, "max_output_tokens")


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
        if "name" not in choice:
            return choice
        return choice | {"name": call.wire_name(choice["name"])}
    tools = []
    for spec in call.tool_specs():
        if spec["name"] in allowed:
            tools.append({"type": spec["type"], "name": call.wire_name(spec["name"])})
    tools += [entry for entry in choice["tools"] if entry["type"] not in _NAMED_TOOL_TYPES]
    return choice | {"tools": tools}


def without_encrypted_input(body: dict[str, Any]) -> dict[str, Any]:
    """For a server that can't read it any more, as after a change of the account."""
    items = [item for item in body.get("input", ()) if item.get("type") != "reasoning"]
    return body | {"input": items}


def without_encrypted_include(body: dict[str, Any], call: ModelCall) -> dict[str, Any]:
    """For a model that encrypts nothing; a client that asks for it gets the refusal."""
    if call.wants_encrypted_reasoning:
        return body
    included = [name for name in body.get("include", ()) if name != ENCRYPTED_REASONING]
    less = {name: value for name, value in body.items() if name != "include"}
    if included:
        less["include"] = included
    return less


def _input_items(call: ModelCall, identity: str) -> list[Item]:
    sent: list[Item] = []
    for item in call.items:
        kind = item.get("type", "message")
        if kind == "message":
            sent.append(_message(item))
        elif kind == "reasoning":
            sent += _reasoning(item, identity)
        elif kind not in _ITEM_FIELDS:  # a kind that only the client and this upstream know
            sent.append(without_fields(item, "id", "status", STATE))
        else:
            given = cast(dict[str, Any], item)
            fields = {name: given[name] for name in _ITEM_FIELDS[kind] if name in given}
            if kind in CALLS:
                fields["name"] = call.wire_name(item["name"])
            sent.append(cast(Item, fields))
    return sent


def _reasoning(item: Item, identity: str) -> list[Item]:
    """Only what this provider encrypted goes back to it."""
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
        if "text" in part:
            parts.append({"type": text_type, "text": part["text"]})
        else:
            parts.append(part)
    return parts
