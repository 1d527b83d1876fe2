"""The events that providers send to the agent loop, and the loop to its caller."""

from dataclasses import dataclass, field
from typing import Any

from gateway_app.agent.model_faults import ContextOverflow, ModelFault
from gateway_app.agent.tools import ApprovalEvent
from gateway_app.agent.usage import Usage as Usage
from responses_app.protocol.items import Annotation as AnnotationBody
from responses_app.protocol.items import CompactedContext, Item, TokenLogprob


@dataclass(frozen=True, slots=True)
class TextDelta:
    text: str
    logprobs: tuple[TokenLogprob, ...] = ()  # of its tokens, where the request asks for them


@dataclass(frozen=True, slots=True)
class MessageStarted:
    """A new message begins; ``phase`` is the upstream's name for its part in the turn."""

    phase: str | None = None


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    text: str
    is_summary: bool = False  # the upstream's summary of its reasoning, not the reasoning itself


@dataclass(frozen=True, slots=True)
class ReasoningSealed:
    """The end of a reasoning item, with content that only the upstream can read."""

    encrypted_content: str
    provider: str = ""


@dataclass(frozen=True, slots=True)
class ItemState:
    """What the provider needs back with a call or, without a call id, with the last item.

    Clients never get it. An empty state only names the provider that the item comes from.
    """

    state: dict[str, Any]
    provider: str
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class RefusalDelta:
    text: str


@dataclass(frozen=True, slots=True)
class OpaqueItem:
    """A whole output item of a kind that only the upstream and the client understand."""

    item: Item


@dataclass(frozen=True, slots=True)
class Annotation:
    """A citation or the like, for the text that is open."""

    annotation: AnnotationBody


@dataclass(frozen=True, slots=True)
class Cut:
    """The stream broke: open items end incomplete, and new items follow."""


@dataclass(frozen=True, slots=True)
class ProtocolDeviation:
    """The upstream departs from its protocol in a way that is tolerated; for the operators."""

    name: str


@dataclass(frozen=True, slots=True)
class UpstreamPosition:
    """The answer runs at its upstream by itself, and was received up to the cursor."""

    upstream: str  # the identity of the provider
    response_id: str
    cursor: int  # the upstream's sequence number


@dataclass(frozen=True, slots=True)
class UpstreamAbandoned:
    """The rest of that answer can't be received: a model is asked again."""


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
class AnswerStarted:
    """Before the first output of a request: from here on it costs something.

    If the turn ends before the upstream has counted, this is all that is known of the input.
    """

    input_tokens: int  # an estimate


@dataclass(frozen=True, slots=True)
class ModelFinished:
    """The end of one request: ``stop``, ``tool_calls``, ``length`` or ``content_filter``."""

    reason: str
    usage: Usage
    upstream_ids: tuple[str, ...] = field(default=(), compare=False)  # of answer and items


# How a round can end before the answer is complete, and the reason that the response gives.
INCOMPLETE_REASONS = {
    "length": "max_output_tokens",
    "content_filter": "content_filter",
    "upstream_cut": "upstream_cut",
    "tool_call_dropped": "tool_call_dropped",
}


@dataclass(frozen=True, slots=True)
class RoundFinished:
    """The model's answer of this round is over; the turn may go on with its tools.

    A round may take several requests: beside their reasons it can end as ``upstream_cut`` or
    ``tool_call_dropped``.
    """

    reason: str
    usage: Usage  # of all requests
    message: str = ""  # for the client, where the reason is not enough
    upstream_ids: tuple[str, ...] = ()
    notes: tuple[Item, ...] = ()  # for the model, behind the outputs of its calls

    @property
    def is_cut_short(self) -> bool:
        return self.reason in INCOMPLETE_REASONS


@dataclass(frozen=True, slots=True)
class Compaction:
    """A summary replaces the conversation before it; without a context it has only begun."""

    context: CompactedContext | None = None
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class Truncation:
    """The oldest turns or rounds of the conversation do not fit, and are not sent."""

    dropped_items: int
    kept_items: int


@dataclass(frozen=True, slots=True)
class ToolFinished:
    call_id: str
    output: str
    is_error: bool = False
    images: tuple[str, ...] = ()  # data URLs, which only the model gets


@dataclass(frozen=True, slots=True)
class TurnParked:
    """Calls wait for an approval; the turn goes on from here once it is given."""

    call_ids: tuple[str, ...] = ()  # those that the next step of the turn waits for


@dataclass(frozen=True, slots=True)
class TurnFinished:
    """The end of the turn; ``incomplete_reason`` names what cut it short, if anything did."""

    usage: Usage
    incomplete_reason: str | None = None
    message: str = ""


Delta = (
    MessageStarted
    | TextDelta
    | Annotation
    | ReasoningDelta
    | ReasoningSealed
    | ItemState
    | RefusalDelta
    | OpaqueItem
    | Cut
    | ProtocolDeviation
    | UpstreamPosition
    | UpstreamAbandoned
    | CallStarted
    | CallArguments
    | CallFinished
)
ModelEvent = Delta | ModelFinished
RoundEvent = Delta | AnswerStarted | RoundFinished
AgentEvent = (
    RoundEvent | Compaction | Truncation | ToolFinished | ApprovalEvent | TurnParked | TurnFinished
)


# What the model answers can be asked for again; what a tool does can't.
ANSWER_EVENTS = (
    AnswerStarted,
    MessageStarted,
    ModelFinished,
    ReasoningDelta,
    RoundFinished,
    TextDelta,
)


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
        model_fault: ModelFault | None = None,
        overflow: ContextOverflow | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.is_transient = is_transient  # the same request may succeed a moment later
        self.retry_after = retry_after  # seconds, where the upstream sends it
        self.usage = usage or Usage()  # what was spent before it failed
        self.model_fault = model_fault  # if another model may succeed
        self.overflow = overflow
        self.is_empty = False  # the stream ended without any output: some servers refuse so
        self.patience_secs = 0.0  # how long a model that is not ready yet is waited for
