"""A call as the request of OpenAI's Chat Completions."""

from typing import TYPE_CHECKING, Any

import orjson

from gateway_app.agent.events import ModelFailed
from gateway_app.agent.model_call import ModelCall
from gateway_app.config.presets.facts import Preset
from gateway_app.providers.openai.chat_completions.message_rules import follow_rules
from gateway_app.providers.openai.chat_completions.returned_state import ReturnedState
from gateway_app.providers.openai.extra_fields import chosen_fields
from gateway_app.providers.openai.message_order import (
    with_joined_cuts,
    with_one_system_message,
    with_placed_notes,
)
from responses_app.protocol.items import (
    CALLS,
    OUTPUTS,
    Content,
    ContentPart,
    Item,
    content_text_with_refusals,
    item_text,
)

if TYPE_CHECKING:  # its SDK takes most of a second to import, and other providers do not need it
    from gateway_app.providers.openai.client import Upstream

# Not metadata: OpenAI refuses it for completions that are not stored.
_SAME_NAMES = (
    "temperature",
    "top_p",
    "prompt_cache_key",
    "safety_identifier",
    "service_tier",
    "user",
)


def chat_body(call: ModelCall, upstream: "Upstream") -> dict[str, Any]:
    body = _extra_fields(call, upstream)
    body["stream_options"] = {"include_usage": True}
    body["messages"] = _messages(call, upstream)
    for name in _SAME_NAMES:
        if call.parameters.get(name) is not None:
            body[name] = call.parameters[name]
    body |= _tool_fields(call, upstream.preset)
    body |= _text_fields(call.parameters.get("text") or {})
    if call.max_output_tokens is not None:
        body[upstream.preset.limit_field] = call.max_output_tokens
    reasoning = call.parameters.get("reasoning") or {}
    if reasoning.get("effort"):
        body["reasoning_effort"] = reasoning["effort"]
    if call.wants_logprobs:
        body["logprobs"] = True
        if call.parameters.get("top_logprobs"):
            body["top_logprobs"] = call.parameters["top_logprobs"]
    for name in upstream.preset.refused_fields:
        body.pop(name, None)
    return upstream.with_options(body, upstream.preset.limit_field, call.answer_room())


def _extra_fields(call: ModelCall, upstream: "Upstream") -> dict[str, Any]:
    preset, mode = upstream.preset, upstream.api_mode
    fields = chosen_fields(call.extras, preset, mode, is_chat_request=False)
    return fields | chosen_fields(call.chat_extras, preset, mode, is_chat_request=True)


def _tool_fields(call: ModelCall, preset: Preset) -> dict[str, Any]:
    specs = call.tool_specs()
    choice = call.tool_choice
    allowed = call.allowed_tool_names()
    if allowed is not None:
        specs = [spec for spec in specs if spec["name"] in allowed]
        choice = call.choice_mode
    elif call.is_choice_of_upstream:
        choice = "auto"  # this protocol has no such tools
    elif isinstance(choice, dict) and not preset.takes_named_choice:
        # One tool that must be called is the same.
        specs = [spec for spec in specs if spec["name"] == choice["name"]]
        choice = "required"
    elif isinstance(choice, dict):
        choice = {"type": "function", "function": {"name": call.wire_name(choice["name"])}}
    if not specs:
        return {}
    tools = []
    for spec in specs:
        tools.append({"type": "function", "function": _function(spec, call)})
    fields: dict[str, Any] = {"tools": tools, "tool_choice": choice}
    if call.parameters.get("parallel_tool_calls") is not None:
        fields["parallel_tool_calls"] = call.parameters["parallel_tool_calls"]
    return fields


def _function(spec: dict[str, Any], call: ModelCall) -> dict[str, Any]:
    if spec["type"] == "custom":
        spec = _free_text_as_function(spec)
    function = _given_fields(spec, ("name", "description", "parameters", "strict"))
    function["name"] = call.wire_name(spec["name"])
    return function


def _free_text_as_function(spec: dict[str, Any]) -> dict[str, Any]:
    """Few servers of this protocol know custom tools; all know a function with one text."""
    descriptions = []
    if spec.get("description"):
        descriptions.append(spec["description"])
    rules = spec.get("format") or {}
    if "definition" in rules:
        syntax, definition = rules.get("syntax"), rules["definition"]
        descriptions.append(f"It must match this {syntax} grammar:\n{definition}")
    text = {"type": "string", "description": "The tool's input, as it is."}
    parameters = {
        "type": "object",
        "properties": {"input": text},
        "required": ["input"],
        "additionalProperties": False,
    }
    description = "\n\n".join(descriptions) or None
    return {"name": spec["name"], "description": description, "parameters": parameters}


def _text_fields(text: dict[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    text_format = text.get("format") or {}
    if text_format.get("type") == "json_schema":
        schema = _given_fields(text_format, ("name", "description", "schema", "strict"))
        fields["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif text_format.get("type") == "json_object":
        fields["response_format"] = {"type": "json_object"}
    # Medium is the default; servers that do not know the field may refuse it.
    if text.get("verbosity") not in (None, "medium"):
        fields["verbosity"] = text["verbosity"]
    return fields


def _given_fields(given: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: given[name] for name in names if given.get(name) is not None}


def _messages(call: ModelCall, upstream: "Upstream") -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    instructions, items = with_one_system_message(call.instructions, call.items)
    if instructions:
        messages.append({"role": "system", "content": instructions})
    returned = ReturnedState(upstream)
    images: list[dict[str, Any]] = []  # of tool outputs: only a user message may have them
    for item in with_joined_cuts(with_placed_notes(items)):
        kind = item.get("type", "message")
        if images and kind not in OUTPUTS:
            messages.append({"role": "user", "content": images})
            images = []
        if kind == "message":
            _add_message(messages, item)
        elif kind in CALLS:
            _add_call(messages, item, call.wire_name(item["name"]))
        elif kind in OUTPUTS:
            output = {"role": "tool", "tool_call_id": item["call_id"]}
            output["content"] = _tool_text(item["output"])
            messages.append(output)
            for part in item["output"] or ():
                if isinstance(part, dict) and "text" not in part:
                    images.append(_part(part))
        returned.add(item, messages)
    if images:
        messages.append({"role": "user", "content": images})
    returned.finish(messages)
    return follow_rules(messages, upstream.preset)


def _add_message(messages: list[dict[str, Any]], item: Item) -> None:
    if item["role"] != "assistant":
        messages.append({"role": item["role"], "content": _content(item["content"])})
        return
    text = item_text(item) or content_text_with_refusals(item["content"])
    if messages and "tool_calls" in messages[-1]:  # the results must follow the calls directly
        messages[-1]["content"] = (messages[-1]["content"] or "") + text
    else:
        messages.append({"role": "assistant", "content": text})


def _add_call(messages: list[dict[str, Any]], item: Item, name: str) -> None:
    if not messages or messages[-1]["role"] != "assistant":
        messages.append({"role": "assistant", "content": None})
    if item["type"] == "custom_tool_call":
        arguments = orjson.dumps({"input": item["input"]}).decode()
    else:
        arguments = item["arguments"]
    function = {"name": name, "arguments": arguments}
    message = messages[-1]
    message["content"] = message["content"] or None
    calls = message.setdefault("tool_calls", [])
    calls.append({"id": item["call_id"], "type": "function", "function": function})


def _content(content: Content) -> str | list[dict[str, Any]]:
    if isinstance(content, str):
        return content
    parts = [_part(part) for part in content]
    if len(parts) == 1 and parts[0]["type"] == "text":
        return str(parts[0]["text"])
    return parts


def _part(part: ContentPart) -> dict[str, Any]:
    if part["type"] == "input_image" and part.get("image_url"):
        image = {"url": part["image_url"]}
        if part.get("detail"):
            image["detail"] = part["detail"]
        return {"type": "image_url", "image_url": image}
    if "text" in part:
        return {"type": "text", "text": part["text"]}
    if part["type"] == "input_file" and part.get("file_data"):
        file = {"filename": part.get("filename") or "file", "file_data": part["file_data"]}
        return {"type": "file", "file": file}
    raise ModelFailed(
        f"A content part of type {part['type']!r} can't be sent to this model.", "invalid_prompt"
    )


def _tool_text(output: Content | None) -> str:
    if isinstance(output, str):
        return output
    texts = []
    for part in output or ():
        texts.append(part.get("text", "[see below]"))
    return "".join(texts)
