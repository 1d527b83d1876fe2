"""A request that its upstream refuses as too long, and what can be done about it."""

from dataclasses import replace

from gateway_app.agent.compaction import plan_compaction
from gateway_app.agent.events import ModelFailed
from gateway_app.agent.model_call import ModelCall
from gateway_app.agent.model_faults import ContextOverflow

# A server that answers a request with nothing may have found it too long, if it is longer than
# half of the window. An unknown window has at least so many tokens.
EMPTY_SHARE = 2
SMALLEST_WINDOW = 2_048


def call_after_overflow(call: ModelCall, failure: ModelFailed) -> ModelCall | None:
    """The call with the window that the upstream has, if its conversation can be shortened."""
    overflow = _overflow(call, failure)
    if overflow is None:
        return None
    estimated = call.estimate()
    if overflow.tokens is not None:
        call.budget.correction.learn(estimated, overflow.tokens)
    budget = call.budget.after_overflow(estimated, overflow, call.max_output_tokens)
    shorter = replace(call, budget=budget)
    if budget.is_truncating:
        is_shorter = len(shorter.fitted_items()) < len(shorter.items)
    else:
        can_compact = budget.is_compacting
        is_shorter = can_compact and plan_compaction(shorter, is_refused=True) is not None
    if not is_shorter:
        return None
    return shorter


def _overflow(call: ModelCall, failure: ModelFailed) -> ContextOverflow | None:
    if failure.overflow is not None or not failure.is_empty:
        return failure.overflow
    window = call.budget.window or SMALLEST_WINDOW
    if call.input_tokens() * EMPTY_SHARE < window:
        return None
    return ContextOverflow()
