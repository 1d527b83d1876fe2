"""A call as the request of OpenAI's Chat Completions."""

from typing import TYPE_CHECKING, Any

import orjson

from gateway_app.agent.events import ModelFailed
from gateway_app.agent.model_call import ModelCall
from responses_app.protocol.items import CALLS, OUTPUTS, Content, ContentPart, Item, item_text

if TYPE_CHECKING:  # the SDK behind it takes most of a second to import, and not everybody needs it
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
# What this protocol knows and the Responses API does not.
CHAT_ONLY_FIELDS = (
    "frequency_penalty",
    "logit_bias",
    "prediction",
    "presence_penalty",
    "seed",
    "stop",
)
_END: Item = {"type": "end"}


def chat_body(call: ModelCall, upstream: "Upstream") -> dict[str, Any]:
    body: dict[str, Any] = {**_extras(call, upstream), "stream_options": {"include_usage": True}}
    body["messages"] = _messages(call, upstream)
    body |= {
        name: call.parameters[name] for name in _SAME_NAMES if call.parameters.get(name) is not None
    }
    body |= _tools(call) | _format(call.parameters.get("text") or {})
    if call.max_output_tokens is not None:
        body["max_completion_tokens" if upstream.is_openai else "max_tokens"] = (
            call.max_output_tokens
        )
    if effort := (call.parameters.get("reasoning") or {}).get("effort"):
        body["reasoning_effort"] = effort
    if call.wants_logprobs:
        count = call.parameters.get("top_logprobs")
        body |= {"logprobs": True, **({"top_logprobs": count} if count else {})}
    return body


def _extras(call: ModelCall, upstream: "Upstream") -> dict[str, Any]:
    """OpenAI refuses a request with a field it does not know; others have fields of their own."""
    return {
        name: value
        for name, value in call.chat_extras.items()
        if name in CHAT_ONLY_FIELDS or not upstream.is_openai
    }


def _tools(call: ModelCall) -> dict[str, Any]:
    specs, choice = call.tool_specs(), call.tool_choice
    allowed = call.allowed_tool_names()
    if allowed is not None:
        specs, choice = [spec for spec in specs if spec["name"] in allowed], choice["mode"]
    elif isinstance(choice, dict):
        choice = {"type": "function", "function": {"name": call.wire_name(choice["name"])}}
    if not specs:
        return {}
    fields = {
        "tools": [_tool({**spec, "name": call.wire_name(spec["name"])}) for spec in specs],
        "tool_choice": choice,
    }
    is_parallel = call.parameters.get("parallel_tool_calls")
    return fields if is_parallel is None else fields | {"parallel_tool_calls": is_parallel}


def _tool(spec: dict[str, Any]) -> dict[str, Any]:
    if spec["type"] == "custom":
        spec = _free_text_as_function(spec)
    names = ("name", "description", "parameters", "strict")
    return {
        "type": "function",
        "function": {name: spec[name] for name in names if spec.get(name) is not None},
    }


def _free_text_as_function(spec: dict[str, Any]) -> dict[str, Any]:
    """Few servers of this protocol know custom tools; all know a function with one text."""
    rules = spec.get("format") or {}
    grammar = (
        f"It must match this {rules.get('syntax')} grammar:\n{rules['definition']}"
        if "definition" in rules
        else ""
    )
    told = "\n\n".join(filter(None, (spec.get("description"), grammar)))
    text = {"type": "string", "description": "The tool's input, as it is."}
    parameters = {
        "type": "object",
        "properties": {"input": text},
        "required": ["input"],
        "additionalProperties": False,
    }
    return {"name": spec["name"], "description": told or None, "parameters": parameters}


def _format(text: dict[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    wanted = text.get("format") or {}
    if wanted.get("type") == "json_schema":
        names = ("name", "description", "schema", "strict")
        schema = {name: wanted[name] for name in names if wanted.get(name) is not None}
        fields["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif wanted.get("type") == "json_object":
        fields["response_format"] = {"type": "json_object"}
    if text.get("verbosity") not in (
        None,
        "medium",
    ):  # the default; servers that don't know it may refuse it
        fields["verbosity"] = text["verbosity"]
    return fields


def _messages(call: ModelCall, upstream: "Upstream") -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    if call.instructions:
        messages.append({"role": "system", "content": call.instructions})
    shown: list[dict[str, Any]] = []  # images of tool outputs, which only a user may send
    for item in [*call.items, _END]:
        kind = item.get("type", "message")
        if shown and kind not in OUTPUTS:
            messages.append({"role": "user", "content": shown})
            shown = []
        if kind == "message" and item["role"] == "assistant":
            _add_assistant(messages, item)
        elif kind == "message":
            role = (
                "system" if item["role"] == "developer" and not upstream.is_openai else item["role"]
            )
            messages.append({"role": role, "content": _content(item["content"])})
        elif kind in CALLS:
            _add_call(messages, item, call.wire_name(item["name"]))
        elif kind in OUTPUTS:
            messages.append(
                {
                    "role": "tool",
                    "tool_call_id": item["call_id"],
                    "content": _tool_text(item["output"]),
                }
            )
            shown += [
                _part(part)
                for part in item["output"] or ()
                if isinstance(part, dict) and "text" not in part
            ]
    return messages


def _add_assistant(messages: list[dict[str, Any]], item: Item) -> None:
    text = item_text(item) or "".join(
        part.get("refusal", "") for part in item["content"] if isinstance(part, dict)
    )
    last = messages[-1] if messages else {}
    if "tool_calls" in last:  # the results must follow the calls with nothing in between
        last["content"] = (last["content"] or "") + text
    else:
        messages.append({"role": "assistant", "content": text})


def _add_call(messages: list[dict[str, Any]], item: Item, name: str) -> None:
    if not messages or messages[-1]["role"] != "assistant":
        messages.append({"role": "assistant", "content": None})
    is_custom = item["type"] == "custom_tool_call"
    arguments = orjson.dumps({"input": item["input"]}).decode() if is_custom else item["arguments"]
    function = {"name": name, "arguments": arguments}
    messages[-1]["content"] = messages[-1]["content"] or None
    messages[-1].setdefault("tool_calls", []).append(
        {"id": item["call_id"], "type": "function", "function": function}
    )


def _content(content: Content) -> str | list[dict[str, Any]]:
    if isinstance(content, str):
        return content
    parts = [_part(part) for part in content]
    return str(parts[0]["text"]) if len(parts) == 1 and parts[0]["type"] == "text" else parts


def _part(part: ContentPart) -> dict[str, Any]:
    if part["type"] == "input_image" and part.get("image_url"):
        detail = {"detail": part["detail"]} if part.get("detail") else {}
        return {"type": "image_url", "image_url": {"url": part["image_url"], **detail}}
    if "text" in part:
        return {"type": "text", "text": part["text"]}
    raise ModelFailed(
        f"A content part of type {part['type']!r} can't be sent to this model.", "invalid_prompt"
    )


def _tool_text(output: Content | None) -> str:
    if isinstance(output, str):
        return output
    return "".join(part.get("text", "[the image below]") for part in output or ())
