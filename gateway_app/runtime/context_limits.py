"""The limits of an agent's context before its turn begins."""

from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import orjson
from django.core.exceptions import ImproperlyConfigured

from gateway_app.agent.tools import Tool
from gateway_app.runtime.agents import Agent, agent_of
from responses_app.protocol.context_limits import ContextLimits
from responses_app.protocol.token_estimate import text_tokens


def limits_of(model: str, requested: list[dict[str, Any]] | None, mode: str) -> ContextLimits:
    """``requested`` are the tools of the request; its own are counted with it."""
    agent = agent_of(model)
    try:
        return ContextLimits(
            window=agent.window().tokens,
            fixed_tokens=_fixed_tokens(agent, requested, mode),
            ratio=agent.correction().ratio,
            is_compacting=agent.compact_share > 0,
        )
    except ImproperlyConfigured:  # in a profile; the turn fails with the explanation
        return ContextLimits()


def _fixed_tokens(agent: Agent, requested: list[dict[str, Any]] | None, mode: str) -> int:
    tools = agent.tools(requested, mode)
    prompt = agent.core_prompt(datetime.now(UTC).date(), tools)
    tokens = _prompt_tokens(prompt) + _prompt_tokens(agent.instructions)
    for tool in tools:
        tokens += _tool_tokens(tool.name, tool.description, _schema(tool))
    return tokens


def _schema(tool: Tool) -> bytes:
    return orjson.dumps(tool.parameters)


@lru_cache(maxsize=256)
def _prompt_tokens(prompt: str) -> int:
    return text_tokens(prompt)


@lru_cache(maxsize=1024)
def _tool_tokens(name: str, description: str, schema: bytes) -> int:
    spec = {
        "type": "function",
        "name": name,
        "description": description,
        "parameters": orjson.loads(schema),
    }
    return text_tokens(orjson.dumps(spec).decode())
