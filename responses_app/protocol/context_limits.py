"""The limits of a model's context, as admission and the count of input tokens use them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

Notes = Mapping[str, Sequence[str]]  # of the model, by their kind

DEFAULT_RESERVE_TOKENS = 4_096  # for the answer, where the request does not limit it
# The answer gets at most one part in so many of the window, or all but one if the request wants it.
MAX_RESERVE_SHARE = 4


def answer_reserve(window: int, max_output_tokens: int | None) -> int:
    """The part of the window that a request leaves to the answer.

    Servers such as vLLM refuse a prompt beside which the requested answer would not fit.
    """
    if max_output_tokens:
        return min(max_output_tokens, window * 3 // MAX_RESERVE_SHARE)
    return min(DEFAULT_RESERVE_TOKENS, window // MAX_RESERVE_SHARE)


def no_notes(notes: Notes) -> int:
    return 0


@dataclass(frozen=True)
class ContextLimits:
    window: int = 0  # in the upstream's tokens; 0 means unknown
    fixed_tokens: int = 0  # of the server's own prompt and tools, as they are estimated
    ratio: float = 1.0  # how many of its tokens the upstream counts for an estimated one
    is_compacting: bool = False  # a longer conversation is replaced by its summary
    max_tokens: int | None = None  # of an answer, where the request does not limit it
    notes_tokens: Callable[[Notes], int] = no_notes  # of the notes that the model is sent

    def room(self, max_output_tokens: int | None) -> int:
        """Beside the answer, in the upstream's tokens."""
        return self.window - answer_reserve(self.window, max_output_tokens or self.max_tokens)

    def tokens(self, estimated: int) -> int:
        """A whole request in the upstream's tokens; the estimate is that of the client's part."""
        return round((estimated + self.fixed_tokens) * self.ratio)

    def least_tokens(self, estimated: int) -> int:
        """The smaller of the estimate and its correction, which texts of other clients move."""
        return min(estimated + self.fixed_tokens, self.tokens(estimated))
