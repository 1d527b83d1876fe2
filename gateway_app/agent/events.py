"""What passes between the agent loop and the providers."""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Protocol

from gateway_app.agent.tools import Tool
from responses_app.protocol.items import CompactedContext

Item = dict[str, Any]


@dataclass(frozen=True, slots=True)
class TextDelta:
    text: str
    logprobs: tuple[Item, ...] = ()  # of its tokens, where somebody asked for them


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
class Annotation:
    """A citation or the like, of the text that is open."""

    annotation: Item


@dataclass(frozen=True, slots=True)
class Cut:
    """The stream broke: what is open ends incomplete, and what follows is said in items of its own."""


@dataclass(frozen=True, slots=True)
class Quirk:
    """A departure of the upstream from its protocol that was put up with; for the operators."""

    name: str


@dataclass(frozen=True, slots=True)
class CallStarted:
    call_id: str
    name: str
    kind: str = "function_call"  # or custom_tool_call, whose arguments are free text


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

    @classmethod
    def read(cls, stored: Mapping[str, int]) -> "Usage":
        """From a log, without the fields that only another version knows."""
        names = [field.name for field in fields(cls)]
        return cls(**{name: stored[name] for name in names if name in stored})

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

    def as_spent(self) -> dict[str, Any] | None:
        """For a response that was cut short: it may have ended before any model counted."""
        return self.as_wire() if self != Usage() else None


@dataclass(frozen=True, slots=True)
class ModelFinished:
    """The end of one model call: ``stop``, ``tool_calls``, ``length`` or ``content_filter``.

    A round of several calls may also end as ``upstream_cut`` or ``tool_call_dropped``.
    """

    reason: str
    usage: Usage
    message: str = ""  # for the client, where the reason does not say enough
    notes: tuple[Item, ...] = ()  # what the model is told behind the outputs of its calls
    upstream_ids: tuple[str, ...] = field(
        default=(), compare=False
    )  # the upstream's, of the answer and its items
    uncounted: int = field(
        default=0, compare=False
    )  # tokens, about, of answers that broke off before any usage


INCOMPLETE_REASONS = {  # how a round can end before the model has said all, and what the response tells of it
    "length": "max_output_tokens",
    **{reason: reason for reason in ("content_filter", "upstream_cut", "tool_call_dropped")},
}


@dataclass(frozen=True, slots=True)
class RoundFinished:
    """The model has said what it had to say in this round; the turn may go on with its tools."""

    reason: str
    usage: Usage
    message: str = ""
    upstream_ids: tuple[str, ...] = ()

    @property
    def is_cut_short(self) -> bool:
        return self.reason in INCOMPLETE_REASONS


@dataclass(frozen=True, slots=True)
class Compaction:
    """A summary takes the place of the conversation so far; it is only begun where nothing stands for it yet."""

    standing: CompactedContext | None = None
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class ToolFinished:
    call_id: str
    output: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class TurnParked:
    """Calls wait for somebody's consent; the turn goes on from here when they have it."""


@dataclass(frozen=True, slots=True)
class TurnFinished:
    """The end of the turn; ``incomplete_reason`` says what cut it short, if anything did."""

    usage: Usage
    incomplete_reason: str | None = None
    message: str = ""


Spoken = (
    MessageStarted
    | TextDelta
    | Annotation
    | ReasoningDelta
    | ReasoningSealed
    | RefusalDelta
    | OpaqueItem
)
Delta = Spoken | Cut | Quirk | CallStarted | CallArguments | CallFinished
ModelEvent = Delta | ModelFinished
AgentEvent = Delta | Compaction | RoundFinished | ToolFinished | TurnParked | TurnFinished


class ModelFailed(Exception):
    """The model can't answer; the message is for the client, the code is one of OpenAI's."""

    def __init__(
        self,
        message: str,
        code: str = "server_error",
        *,
        is_transient: bool = False,
        retry_after: float | None = None,
        usage: Usage | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.is_transient = is_transient  # the same question may well be answered in a moment
        self.retry_after = retry_after  # seconds, where the upstream said so
        self.usage = usage or Usage()  # what the upstream counted before it failed


@dataclass(frozen=True)
class ModelCall:
    """One question to a model. Items are in the shape of OpenAI's Responses API."""

    model: str
    items: list[Item]
    instructions: str | None = None
    tools: tuple[Tool, ...] = ()  # run by the server
    client_tools: tuple[
        dict[str, Any], ...
    ] = ()  # run by the client, as its request describes them
    hosted_tools: tuple[dict[str, Any], ...] = ()  # of other kinds, for upstreams that know them
    tool_choice: Any = "auto"
    max_output_tokens: int | None = None
    max_tool_calls: int | None = None
    compact_threshold: int | None = (
        None  # in tokens: where a summary takes the place of the conversation
    )
    # The request's other fields for the model: temperature, top_p, text, reasoning, parallel_tool_calls, ...
    parameters: dict[str, Any] = field(default_factory=dict)
    # Fields of the request that only upstreams know: those of the Responses API, or of Chat Completions.
    extras: dict[str, Any] = field(default_factory=dict)
    chat_extras: dict[str, Any] = field(default_factory=dict)
    # Ids of calls that no item shows, or not under that id: no other call of the turn may have them.
    used_call_ids: frozenset[str] = frozenset()
    is_retry: bool = False  # an attempt before this one broke: ask over a connection of its own

    def tool_specs(self) -> list[dict[str, Any]]:
        """Every tool on offer but the upstream's own, as the Responses API describes them."""
        served = [
            {
                "type": "function",
                "name": t.name,
                "description": t.description,
                "parameters": t.parameters,
            }
            for t in self.tools
        ]
        return [*served, *self.client_tools]

    def wire_name(self, name: str) -> str:
        is_clients = any(tool["name"] == name for tool in self.client_tools)
        return name if is_clients else wire_name(name)

    def public_name(self, wire_name: str) -> str:
        return next(
            (tool.name for tool in self.tools if self.wire_name(tool.name) == wire_name), wire_name
        )

    @property
    def wants_logprobs(self) -> bool:
        wishes = self.parameters.get("include") or ()
        return bool(self.parameters.get("top_logprobs")) or "message.output_text.logprobs" in wishes

    @property
    def is_formatted(self) -> bool:
        """Must the answer be one document, which can't be put together from pieces?"""
        wanted = (self.parameters.get("text") or {}).get("format") or {}
        return bool(wanted.get("type", "text") != "text")

    def followed_by(self, items: list[Item]) -> "ModelCall":
        """The next call of the turn; a choice that forces a call has had its call."""
        choice = self.tool_choice
        if isinstance(choice, dict) and choice.get("type") == "allowed_tools":
            choice = {**choice, "mode": "auto"}
        elif choice != "none":
            choice = "auto"
        return replace(self, items=[*self.items, *items], tool_choice=choice)


def wire_name(name: str) -> str:
    """A server's tool as upstreams take it: to most of them a dot is no part of a name."""
    return name.replace(".", "-")


class Provider(Protocol):
    """A way to reach a model; one file each in ``providers/``."""

    def stream(self, call: ModelCall) -> AsyncGenerator[ModelEvent]: ...
