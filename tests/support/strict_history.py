"""What real servers and their templates demand of the calls in a conversation.

Ollama, SGLang and vLLM answer 400, and llama-server 500, to arguments that are no JSON object; templates
without call ids pair results with calls by their position.
"""

import json
from collections.abc import Iterator
from typing import Any

Exchange = tuple[list[tuple[str, str]], list[str]]  # calls as id and arguments, and the ids of their results


def flaw_in(body: dict[str, Any]) -> str:
    """Empty if there is none."""
    for calls, results in exchanges(body):
        for call_id, arguments in calls:
            if not _is_object(arguments):
                return f"The arguments of {call_id} are no JSON object: {arguments}"
        if [call_id for call_id, _ in calls] != results:
            return f"The results {results} do not follow the calls {calls}."
    return ""


def exchanges(body: dict[str, Any]) -> Iterator[Exchange]:
    """Each run of calls with the results right behind it, in both protocols."""
    calls: list[tuple[str, str]] = []
    results: list[str] = []
    for kind, call_id, arguments in _entries(body):
        if kind != "result" and results:
            yield calls, results
            calls, results = [], []
        if kind == "call":
            calls.append((call_id, arguments))
        elif kind == "result":
            results.append(call_id)
    if calls or results:
        yield calls, results


def _entries(body: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    for message in body.get("messages", ()):
        if message["role"] == "tool":
            yield "result", message["tool_call_id"], ""
        for call in message.get("tool_calls", ()):
            yield "call", call["id"], call["function"]["arguments"]
        if message["role"] == "user":
            yield "message", "", ""
    for item in body.get("input", ()):
        if item["type"] == "function_call":
            yield "call", item["call_id"], item["arguments"]
        elif item["type"] == "function_call_output":
            yield "result", item["call_id"], ""
        else:
            yield "message", "", ""


def _is_object(arguments: str) -> bool:
    try:
        return isinstance(json.loads(arguments), dict)
    except ValueError:
        return False
