"""How the built-in model fills a schema and decides to call a tool: by the words of the question."""

import re
from typing import Any

from gateway_app.agent.model_call import ModelCall
from gateway_app.providers.builtin.script import Call

# Each pattern reads a text once: it may have megabytes, and it is searched on the event loop.
_CALCULATE = re.compile(r"\bcalculate\s([-+*/().\d\s]+)", re.IGNORECASE)
_UP_TO_LAST_NUMBER = re.compile(r".*\d[)\s]*", re.DOTALL)
MIN_HINT_CHARS = 4  # shorter parts of a tool's name ("get", "to") identify nothing
MAX_DEPTH = 8


def choose_call(asked: str, call: ModelCall) -> Call | None:
    """The call that a question, or the request's tool choice, asks for."""
    if call.tool_choice == "none":
        return None
    call_id = f"call_{len(call.items)}"
    expression = _expression(asked)
    if expression and any(tool.name == "calculate" for tool in call.tools):
        return Call(call_id, "calculate", {"expression": expression})
    tools, is_forced = _callable_tools(call)
    chosen = [tool for tool in tools if _is_hinted(tool["name"], asked)]
    if not chosen and is_forced:
        chosen = tools
    if not chosen:
        return None
    arguments = sample(chosen[0].get("parameters") or {})
    return Call(call_id, chosen[0]["name"], arguments)


def _expression(asked: str) -> str:
    """The arithmetic behind the first "calculate" that has some, or an empty text."""
    for candidate in _CALCULATE.finditer(asked):
        expression = _UP_TO_LAST_NUMBER.match(candidate[1])
        if expression:
            return expression[0].strip()
    return ""


def _callable_tools(call: ModelCall) -> tuple[list[dict[str, Any]], bool]:
    """The client's tools that may be called, and whether one of them must be."""
    tools = list(call.client_tools)
    choice = call.tool_choice
    if not isinstance(choice, dict) or call.is_choice_of_upstream:
        return tools, choice == "required"
    allowed = call.allowed_tool_names()
    if allowed is None:
        allowed = {choice["name"]}
    elif choice["type"] == "mcp":
        tools = call.tool_specs()
    chosen = [tool for tool in tools if tool["name"] in allowed]
    return chosen, call.choice_mode == "required"


def _is_hinted(name: str, asked: str) -> bool:
    hints = [part for part in re.split(r"[_.\-]", name.lower()) if len(part) >= MIN_HINT_CHARS]
    return any(hint in asked.lower() for hint in hints)


def sample(schema: Any, depth: int = 0) -> Any:
    """A small value that a schema allows; an empty object for what is no schema."""
    if not isinstance(schema, dict) or depth > MAX_DEPTH:
        return {}
    if "const" in schema:
        return schema["const"]
    for listed in ("enum", "anyOf", "oneOf", "allOf"):
        choices = schema.get(listed)
        if isinstance(choices, list) and choices:
            if listed == "enum":
                return choices[0]
            return sample(choices[0], depth + 1)
    kind = schema.get("type")
    if isinstance(kind, list) and kind:
        kind = kind[0]
    if kind == "array":
        if depth >= MAX_DEPTH:
            return []
        return [sample(schema.get("items"), depth + 1)]
    if kind in (None, "object"):
        return _sample_object(schema.get("properties"), depth)
    return {"string": "sample", "integer": 1, "number": 1.5, "boolean": True}.get(str(kind))


def _sample_object(properties: Any, depth: int) -> dict[str, Any]:
    if not isinstance(properties, dict) or depth >= MAX_DEPTH:
        return {}
    return {name: sample(schema, depth + 1) for name, schema in properties.items()}
