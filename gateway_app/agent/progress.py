"""What earlier attempts of a turn did."""

from dataclasses import dataclass, field

from gateway_app.agent.events import RoundFinished, Usage
from gateway_app.agent.model_call import CutAt
from gateway_app.agent.tools import ToolCall
from responses_app.protocol.items import Item


@dataclass(frozen=True)
class TurnProgress:
    """What earlier attempts of a turn did; empty for a new turn."""

    items: tuple[Item, ...] = ()  # the model's output, and the outputs of its calls
    pending: tuple[ToolCall, ...] = ()  # whole calls without a result
    usage: Usage = field(default_factory=Usage)  # estimated for answers that broke off
    # The estimate of an answer that runs on at its upstream, which counts it when it is picked up.
    open_usage: Usage = field(default_factory=Usage)
    # The part of the usage that went into summaries; None if no summary was completed.
    spent_on_summaries: Usage | None = None
    tool_calls: int = 0  # of the server's tools, with results or without
    rounds: int = 0
    last_round: RoundFinished | None = None  # if no output follows it
    is_answer_empty: bool = False  # that of the last round
    is_asked_again: bool = False  # as an answer was empty
    cut_at: CutAt | None = None  # where the last message was cut, if it was
    notes: tuple[Item, ...] = ()  # for the model, behind the outputs of the pending calls

    @property
    def is_message_cut(self) -> bool:
        return self.cut_at is not None
