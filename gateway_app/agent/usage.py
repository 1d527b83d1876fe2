"""The tokens that requests to models cost."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from responses_app.protocol.response_object import UsageBody


@dataclass(frozen=True, slots=True)
class Usage:
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    is_estimated: bool = False  # at least one of the counts is ours and not the upstream's

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            self.is_estimated or other.is_estimated,
        )

    @classmethod
    def read(cls, stored: Mapping[str, int]) -> "Usage":
        """From a log, without the fields that only another version knows."""
        known: dict[str, Any] = {}
        for counted in fields(cls):
            if counted.name in stored:
                known[counted.name] = stored[counted.name]
        return cls(**known)

    def or_estimate(self, input_tokens: int, output_tokens: int) -> "Usage":
        """With these estimates for what the upstream did not count."""
        if self.input_tokens and (self.output_tokens or not output_tokens):
            return self
        return replace(
            self,
            input_tokens=self.input_tokens or input_tokens,
            output_tokens=self.output_tokens or output_tokens,
            is_estimated=True,
        )

    def stored(self) -> dict[str, int]:
        """For a log, which ``read`` takes."""
        return {
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cached_tokens": self.cached_tokens,
            "cache_write_tokens": self.cache_write_tokens,
            "reasoning_tokens": self.reasoning_tokens,
            "is_estimated": self.is_estimated,
        }

    def as_wire(self) -> UsageBody:
        return {
            "input_tokens": self.input_tokens,
            "input_tokens_details": {
                "cached_tokens": self.cached_tokens,
                "cache_write_tokens": self.cache_write_tokens,
            },
            "output_tokens": self.output_tokens,
            "output_tokens_details": {"reasoning_tokens": self.reasoning_tokens},
            "total_tokens": self.input_tokens + self.output_tokens,
        }

    def as_spent(self) -> UsageBody | None:
        """For a response that was cut short; None if no model had answered yet."""
        if self == Usage():
            return None
        return self.as_wire()
