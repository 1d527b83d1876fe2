"""The limits of an agent's context before its turn begins."""

from datetime import UTC, datetime
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from gateway_app.runtime.agents import Agent, agent_of
from responses_app.protocol.context_limits import ContextLimits
from responses_app.protocol.token_estimate import prompt_tokens


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
    tokens = prompt_tokens(prompt) + prompt_tokens(agent.instructions)
    return tokens + sum(tool.tokens for tool in tools)
