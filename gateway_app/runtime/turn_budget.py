"""How much of a model's window a turn may fill, and with what."""

from gateway_app.agent.budget import Budget
from gateway_app.runtime.agents import Agent, available_tools
from gateway_app.runtime.turn_request import TurnRequest
from gateway_app.runtime.visible_results import ResultCap

DEFAULT_SHARE = 0.8  # of the window, where a request asks for compaction and the server does not
COMPACT_TOKENS = 100_000  # where a request asks for compaction, and the window is not known


def result_cap(agent: Agent) -> ResultCap:
    return ResultCap(agent.window().tokens, available_tools())


def turn_budget(request: TurnRequest, agent: Agent) -> Budget:
    is_truncating = request.fields.get("truncation") == "auto"
    is_managed = bool(request.fields.get("context_management"))
    return Budget(
        window=agent.window().tokens,
        is_truncating=is_truncating,
        is_compacting=is_managed or (agent.compact_share > 0 and not is_truncating),
        sent_reasoning=agent.sent_reasoning(),
        correction=agent.correction(),
        max_tokens=agent.max_tokens(),
    )


def compact_threshold(request: TurnRequest, agent: Agent, budget: Budget) -> int | None:
    """A request that drops its oldest turns is not compacted, unless it asks for that too."""
    share = agent.compact_share
    entries = request.fields.get("context_management")
    if entries:
        by_window = int(budget.window * (share or DEFAULT_SHARE))
        return int(entries[0].get("compact_threshold") or by_window or COMPACT_TOKENS)
    if not budget.is_compacting or not budget.window:
        return None
    threshold = int(budget.window * share)
    max_tokens = request.fields.get("max_output_tokens") or budget.max_tokens
    if max_tokens is None:
        return threshold
    return min(threshold, budget.window - budget.reserve(max_tokens))
