"""The budget of a model's context: what fits into the window beside the answer.

Every decision about the size of a request uses it: truncation, compaction, the pieces of a
summary, the cap on a tool's result, the refusal at admission and the count of input tokens.
"""

from dataclasses import dataclass, field, replace
from functools import partial

from gateway_app.agent.model_faults import ContextOverflow
from responses_app.protocol.context_limits import answer_reserve
from responses_app.protocol.sent_reasoning import SentReasoning

MIN_RATIO, MAX_RATIO = 0.6, 2.0
MIN_LEARNED_TOKENS = 200  # of shorter requests, what frames the messages decides the ratio
# One odd text of one client does not change much for the others.
SMOOTHED_OVER = 4
# Counted by an upstream that reads less than it was sent.
CUT_SHARE = 2


class Correction:
    """How an upstream counts, beside the estimate: from the last requests that it counted.

    One for each upstream and process. A request of which the upstream counts less than half was
    cut there, or counted without its cached part: nothing is learned from it.
    """

    def __init__(self, *, is_fixed: bool = False) -> None:
        self.ratio = 1.0
        self._is_learned = False
        self._is_fixed = is_fixed  # of a model that does not count as real ones do

    def learn(self, estimated: int, counted: int) -> None:
        if self._is_fixed or estimated < MIN_LEARNED_TOKENS or is_cut(estimated, counted):
            return
        found = min(MAX_RATIO, max(MIN_RATIO, counted / estimated))
        if self._is_learned:
            found = (self.ratio * (SMOOTHED_OVER - 1) + found) / SMOOTHED_OVER
        self.ratio = found
        self._is_learned = True

    def tokens(self, estimated: int) -> int:
        return round(estimated * self.ratio)


def is_cut(estimated: int, counted: int) -> bool:
    return counted * CUT_SHARE < estimated


@dataclass(frozen=True)
class Budget:
    window: int = 0  # in the upstream's tokens; 0 means unknown
    is_truncating: bool = False  # the oldest turns and rounds are dropped
    # A conversation that the upstream refuses as too long is replaced by its summary.
    is_compacting: bool = False
    sent_reasoning: SentReasoning = SentReasoning.LOOP
    correction: Correction = field(default_factory=partial(Correction, is_fixed=True))
    max_tokens: int | None = None  # of an answer, where the request does not limit it

    def tokens(self, estimated: int) -> int:
        """The estimate in the upstream's tokens."""
        return self.correction.tokens(estimated)

    def reserve(self, max_output_tokens: int | None) -> int:
        return answer_reserve(self.window, max_output_tokens or self.max_tokens)

    def summary_tokens(self) -> int | None:
        """The limit of a summary, which is no longer than the operator lets an answer be."""
        limits = (answer_reserve(self.window, None), self.max_tokens)
        return min(filter(None, limits), default=None)

    def room(self, fixed: int, max_output_tokens: int | None = None) -> int:
        """For the items of a request, as they are estimated; ``fixed`` is the rest of it."""
        free = self.window - self.reserve(max_output_tokens)
        return max(0, int(free / self.correction.ratio) - fixed)

    def after_overflow(
        self, estimated: int, overflow: ContextOverflow, max_output_tokens: int | None = None
    ) -> "Budget":
        """With a window that the refused request is too long for.

        By the upstream's own numbers, as far as it sends them; otherwise a quarter shorter.
        """
        tokens = self.tokens(estimated)
        shorter = tokens * 3 // 4 + (max_output_tokens or self.max_tokens or 0)
        limit = min(filter(None, (overflow.window, self.window)), default=shorter)
        if overflow.tokens is not None:
            scaled = replace(self, window=int(limit * min(1.0, tokens / overflow.tokens)))
            if scaled.room(0, max_output_tokens) < estimated:
                return scaled
        return replace(self, window=min(limit, shorter))
