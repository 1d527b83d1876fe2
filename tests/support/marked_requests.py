"""Requests and answers with a marker in every place that can hold a word."""

import json
from typing import Any

from tests.support.markers import Markers
from tests.support.model_stub import (
    Call,
    Calls,
    ModelStub,
    Raw,
    Refusal,
    Step,
    Text,
    Thought,
    sse,
)

SERVER_TOOLS = [
    {"type": "mcp", "server_label": "hermes"},
    {"type": "mcp", "server_label": "demo"},
]


def marked_items(marker: Markers) -> list[dict[str, Any]]:
    """Input items of every kind that a reader knows."""
    marks = {"id": marker("message id"), "phase": marker("phase")}
    reply = {"type": "input_text", "text": marker("input text")}
    seen = {"type": "input_image", "image_url": f"data:image/png;base64,{marker('input image')}"}
    answered = [
        {"type": "output_text", "text": marker("assistant text"), "annotations": []},
        {"type": "refusal", "refusal": marker("assistant refusal")},
    ]
    call_id = marker("input call_id")
    custom_id = marker("input custom call_id")
    kept = {"type": "web_search_call", "id": marker("kept item id")}
    kept[marker("kept item key")] = marker("kept item")
    mcp = {"type": "mcp_call", "id": marker("mcp item id"), "server_label": "hermes"}
    mcp["name"] = "calculate"
    return [
        {"role": "developer", "content": marker("developer message")},
        {**marks, "role": "user", "content": [reply, seen]},
        {"role": "assistant", "content": answered},
        _call("function_call", call_id, marker("call name"), arguments=marker("input arguments")),
        {"type": "function_call_output", "call_id": call_id, "output": marker("input output")},
        _call("custom_tool_call", custom_id, marker("custom name"), input=marker("custom input")),
        {"type": "custom_tool_call_output", "call_id": custom_id, "output": marker("custom out")},
        {**mcp, "arguments": marker("mcp arguments"), "output": marker("mcp output")},
        {
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": marker("reasoning summary")}],
            "encrypted_content": marker("encrypted reasoning"),
        },
        kept,
        {"role": "user", "content": marker("last message")},
    ]


def _call(kind: str, call_id: str, name: str, **written: str) -> dict[str, Any]:
    return {"type": kind, "call_id": call_id, "name": name, **written}


def marked_request(marker: Markers) -> dict[str, Any]:
    """Every field that takes a word has a marker; a test compares the names with the readers."""
    function = {
        "type": "function",
        "name": marker("client tool name"),
        "description": marker("client tool description"),
        "parameters": {"type": "object", "properties": {marker("parameter"): {"type": "string"}}},
    }
    custom = {
        "type": "custom",
        "name": marker("custom tool name"),
        "description": marker("custom tool description"),
        "format": {"type": "grammar", "syntax": "lark", "definition": marker("grammar")},
    }
    hosted = {"type": marker("hosted tool type"), marker("hosted key"): marker("hosted value")}
    managed = {"type": "compaction", "compact_threshold": 100_000}
    return {
        "input": marked_items(marker),
        "conversation_history": [{"role": "user", "content": marker("earlier message")}],
        "model": "hermes-agent",
        "instructions": marker("instructions"),
        "metadata": {marker("metadata key"): marker("metadata value")},
        "prompt_cache_key": marker("prompt_cache_key"),
        "safety_identifier": marker("safety_identifier"),
        "user": marker("user"),
        "max_output_tokens": 10_000,
        "max_tool_calls": 50,
        "parallel_tool_calls": False,
        "reasoning": {"effort": "low", marker("reasoning key"): marker("reasoning value")},
        "service_tier": "auto",
        "temperature": 1,
        "text": {"verbosity": "low", marker("text key"): marker("text value")},
        "tool_choice": "auto",
        "tools": [function, custom, hosted, *SERVER_TOOLS],
        "top_logprobs": 0,
        "top_p": 1,
        "truncation": "auto",
        "context_management": [{**managed, marker("management key"): marker("management")}],
        "include": ["message.input_image.image_url"],
        "stream_options": {marker("stream key"): marker("stream value")},
        marker("unknown field"): {marker("unknown key"): marker("unknown value")},
    }


def marked_calls(marker: Markers) -> Calls:
    """Calls of a built-in tool, of ones that fail or ask, of an MCP server, and of no tool at all."""
    return Calls(
        (
            _made(marker, "calculate", expression=marker("expression")),
            _made(marker, "explode", text=marker("error of a tool")),
            _made(marker, "quoted", text=marker("reason for consent")),
            _made(marker, "chatty", size=5, text=marker("chatty argument")),
            _made(marker, "demo-add", a=marker("MCP argument"), b=1),
            _made(marker, marker("invented tool"), text=marker("invented argument")),
        )
    )


def _made(marker: Markers, name: str, **arguments: Any) -> Call:
    return Call(marker(f"call id of {name[:8]}"), name, (json.dumps(arguments),))


def marked_answer(marker: Markers) -> list[Step]:
    cited = {"type": "url_citation", "url": f"https://example.invalid/{marker('citation url')}"}
    cited |= {"title": marker("citation title")}
    place = {"output_index": 1, "content_index": 0, "annotation_index": 0}
    annotated = {"type": "response.output_text.annotation.added", **place, "annotation": cited}
    opaque = {"type": marker("opaque item type"), "id": marker("opaque item id")}
    opaque["text"] = marker("opaque item")
    done = {"type": "response.output_item.done", "output_index": 9, "item": opaque}
    kept = {"type": "reasoning", "summary": [], "encrypted_content": marker("provider state")}
    thought = {"type": "response.output_item.done", "output_index": 8, "item": kept}
    return [
        Raw(sse(thought, str(thought["type"]))),
        Thought(marker("reasoning")),
        Text(marker("answer")),
        Raw(sse(annotated, str(annotated["type"]))),
        Refusal(marker("refusal")),
        Raw(sse(done, str(done["type"]))),
    ]


def marked_error(marker: Markers) -> dict[str, Any]:
    names = ("message", "code", "type", "param")
    return {"error": {name: f"{marker(f'upstream error {name}')} is bad" for name in names}}


def in_front_of(stub: ModelStub) -> dict[str, str]:
    """The environment of a server that asks the stub, logs all it can, and tidies soon."""
    return {
        "HERMES_PROVIDER": "custom",
        "HERMES_BASE_URL": stub.url,
        "HERMES_MODEL": "m",
        "HERMES_API_MODE": "codex_responses",
        "HERMES_STREAM_RETRIES": "0",
        "HERMES_SWEEP_SECS": "0.1",
        "TEST_LOG_LEVEL": "DEBUG",
    }
