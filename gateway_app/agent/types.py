"""What passes between the agent loop, the providers and the tools."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

Item = dict[str, Any]


@dataclass(frozen=True, slots=True)
class TextDelta:
    text: str


@dataclass(frozen=True, slots=True)
class MessageStarted:
    """What follows is a message of its own; ``phase`` is the upstream's word for its part in the turn."""

    phase: str | None = None


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ReasoningSealed:
    """The end of a reasoning item, with what only the upstream can read of it."""

    encrypted_content: str


@dataclass(frozen=True, slots=True)
class RefusalDelta:
    text: str


@dataclass(frozen=True, slots=True)
class OpaqueItem:
    """A whole output item of a kind that only the upstream and the client understand."""

    item: Item


@dataclass(frozen=True, slots=True)
class CallStarted:
    call_id: str
    name: str


@dataclass(frozen=True, slots=True)
class CallArguments:
    call_id: str
    delta: str


@dataclass(frozen=True, slots=True)
class CallFinished:
    call_id: str
    is_cut: bool = False  # the model was cut off in it: it must not be run


@dataclass(frozen=True, slots=True)
class Usage:
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
        )

    def as_wire(self) -> dict[str, Any]:
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


@dataclass(frozen=True, slots=True)
class ModelFinished:
    """The end of one model call: ``stop``, ``tool_calls``, ``length`` or ``content_filter``."""

    reason: str
    usage: Usage


@dataclass(frozen=True, slots=True)
class ToolFinished:
    call_id: str
    output: str


@dataclass(frozen=True, slots=True)
class TurnFinished:
    """The end of the turn; ``incomplete_reason`` says what cut it short, if anything did."""

    usage: Usage
    incomplete_reason: str | None = None


Said = MessageStarted | TextDelta | ReasoningDelta | ReasoningSealed | RefusalDelta | OpaqueItem
Delta = Said | CallStarted | CallArguments | CallFinished
ModelEvent = Delta | ModelFinished
AgentEvent = Delta | ToolFinished | TurnFinished


class ModelFailed(Exception):
    """The model can't answer; the message is for the client, the code is one of OpenAI's."""

    def __init__(self, message: str, code: str = "server_error") -> None:
        super().__init__(message)
        self.message = message
        self.code = code


@dataclass(frozen=True, slots=True)
class ToolCall:
    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Tool:
    """Something the server can do for the model; one file each in ``tools/``."""

    name: str
    description: str
    parameters: dict[str, Any]
    run: Callable[[dict[str, Any]], Awaitable[str]]
    is_replay_safe: bool = False


@dataclass(frozen=True)
class ModelCall:
    """One question to a model. Items are in the shape of OpenAI's Responses API."""

    model: str
    items: list[Item]
    instructions: str | None = None
    tools: tuple[Tool, ...] = ()  # run by the server
    client_tools: tuple[dict[str, Any], ...] = ()  # run by the client, as its request describes them
    hosted_tools: tuple[dict[str, Any], ...] = ()  # of other kinds, for upstreams that know them
    tool_choice: Any = "auto"
    max_output_tokens: int | None = None
    max_tool_calls: int | None = None
    # The request's other fields for the model: temperature, top_p, text, reasoning, parallel_tool_calls, ...
    parameters: dict[str, Any] = field(default_factory=dict)
    # Fields of the request that nobody here knows, for upstreams that speak the Responses API.
    extras: dict[str, Any] = field(default_factory=dict)

    def tool_specs(self) -> list[dict[str, Any]]:
        """Every function tool on offer, as the Responses API describes them."""
        served = [
            {"type": "function", "name": t.name, "description": t.description, "parameters": t.parameters}
            for t in self.tools
        ]
        return [*served, *self.client_tools]

    def followed_by(self, items: list[Item]) -> "ModelCall":
        """The next call of the turn; a choice that forces a call has had its call."""
        choice = self.tool_choice
        if isinstance(choice, dict) and choice.get("type") == "allowed_tools":
            choice = {**choice, "mode": "auto"}
        elif choice != "none":
            choice = "auto"
        return replace(self, items=[*self.items, *items], tool_choice=choice)


class Provider(Protocol):
    """A way to reach a model; one file each in ``providers/``."""

    def stream(self, call: ModelCall) -> AsyncGenerator[ModelEvent]: ...


RunTool = Callable[[ToolCall], Awaitable[str]]
