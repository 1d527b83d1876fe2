"""The limits of an agent's context before its turn begins."""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from gateway_app.agent.tools import Tool
from gateway_app.runtime.agents import Agent, agent_of
from gateway_app.runtime.notes import listed_notes
from responses_app.protocol.context_limits import ContextLimits, Notes
from responses_app.protocol.token_estimate import prompt_tokens, text_tokens


def limits_of(model: str, requested: list[dict[str, Any]] | None, mode: str) -> ContextLimits:
    """``requested`` are the tools of the request; its own are counted with it."""
    agent = agent_of(model)
    try:
        tools = agent.tools(requested, mode)
        window = agent.window().tokens
        return ContextLimits(
            window=window,
            fixed_tokens=_fixed_tokens(agent, tools),
            ratio=agent.correction().ratio,
            is_compacting=agent.compact_share > 0,
            max_tokens=agent.max_tokens(),
            notes_tokens=partial(_notes_tokens, {tool.name for tool in tools}, window),
        )
    except ImproperlyConfigured:  # in a profile; the turn fails with the explanation
        return ContextLimits()


def _fixed_tokens(agent: Agent, tools: Sequence[Tool]) -> int:
    prompt = agent.core_prompt(datetime.now(UTC).date(), tools)
    tokens = prompt_tokens(prompt) + prompt_tokens(agent.instructions)
    return tokens + sum(tool.tokens for tool in tools)


def _notes_tokens(tool_names: Collection[str], window: int, notes: Notes) -> int:
    return text_tokens(listed_notes(tool_names, notes, window))
