"""What earlier attempts left in the log: where the agent loop goes on."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from gateway_app.agent.context import as_function_call, as_function_output
from gateway_app.agent.events import RoundFinished, Usage
from gateway_app.agent.loop import TurnProgress
from gateway_app.agent.tools import ToolCall
from gateway_app.runtime.tool_runner import TOLD_ONCE, shown
from responses_app.eventlog import Segment
from responses_app.eventlog.damage import decode_log
from responses_app.eventlog.reading import read_whole
from responses_app.eventlog.segments import first_output_at
from responses_app.models import ToolEvent
from responses_app.protocol.builder import OutputBuilder
from responses_app.protocol.events import (
    ATTEMPT_STARTED,
    CONTEXT_COMPACTED,
    ITEM_ADDED,
    MODEL_FINISHED,
    PROTOCOL_DEVIATION,
    TOOL_CALLED,
    Event,
)
from responses_app.protocol.items import (
    ARGUMENTS_OF,
    CALLS,
    COMPACTION,
    OUTPUTS,
    Item,
    all_call_ids,
    call_arguments,
    content_text_with_refusals,
    output_ids,
)
from responses_app.protocol.token_estimate import tokens_of

_TOLD_ANYWAY = CALLS | OUTPUTS | {"mcp_call", COMPACTION}


@dataclass(frozen=True)
class ResumedTurn(TurnProgress):
    """And what only this side needs to know."""

    hidden: frozenset[str] = frozenset()  # calls that are not shown
    told: frozenset[tuple[str, str]] = frozenset()  # of what is told once: event type and call id
    used_call_ids: frozenset[str] = frozenset()


@dataclass(frozen=True)
class EarlierAttempts:
    """What earlier attempts left, read and rebuilt beside the event loop: a long log takes a second."""

    events: list[Event]
    builder: OutputBuilder
    usage: Usage
    deviations: list[str]
    first_output_at: datetime | None


def read_attempts(response_id: str) -> EarlierAttempts:
    return attempts_in(response_id, read_whole(response_id))


def attempts_in(response_id: str, segments: list[Segment]) -> EarlierAttempts:
    events = list(decode_log(segments))
    usage, deviations = read_spent(events)
    return EarlierAttempts(
        events, OutputBuilder(response_id, events), usage, deviations, first_output_at(segments)
    )


def read_progress(
    events: Iterable[Event], builder: OutputBuilder, ledger: Mapping[str, ToolEvent]
) -> ResumedTurn:
    """The builder has seen these events, and nothing of what was being said is open in it."""
    log = _AttemptsLog(events)
    model_items = _ModelItems(log, builder.output, ledger)
    hidden = frozenset(str(call["call_id"]) for call in log.hidden)
    return ResumedTurn(
        items=tuple(model_items.items),
        pending=tuple(model_items.pending),
        usage=log.usage,
        uncounted=sum(
            tokens_of(_chars_written(item)) for item in _broken_off(builder.output, log.round_start)
        ),
        spent_on_summaries=log.spent_on_summaries,
        rounds=log.rounds,
        tool_calls=len(log.shown) + len(hidden),
        last_round=log.last_round,
        is_message_cut=model_items.breaks_off_in_words(builder.output[log.round_start :]),
        hidden=hidden,
        told=frozenset(log.told),
        used_call_ids=frozenset(ledger)
        | all_call_ids(builder.output)
        | hidden
        | set(log.shown.values()),
    )


def read_spent(events: Iterable[Event]) -> tuple[Usage, list[str]]:
    """What the attempts before took, and their deviations: also for the end of a turn that asks no model again."""
    log = _AttemptsLog(events)
    return log.usage, log.deviations


class _AttemptsLog:
    def __init__(self, events: Iterable[Event]) -> None:
        self.usage = Usage()
        self.spent_on_summaries: Usage | None = None
        self.rounds = 0
        self.round_start = 0  # the first item that came after the last whole round
        self.last_round: RoundFinished | None = None
        self.shown: dict[int, str] = {}  # output index -> call id
        self.hidden: list[Event] = []
        self.steps: list[
            int | Event | None
        ] = []  # items by their index, hidden calls, ends of what was said at once
        self.deviations: list[str] = []
        self.told: set[tuple[str, str]] = set()
        self._item_count = 0
        for event in events:
            self._read(event)

    def _read(self, event: Event) -> None:
        kind = event["type"]
        if kind == ITEM_ADDED:
            self._item_count += 1
            self.steps.append(event["output_index"])
            if event["item"]["type"] != "function_call_output":
                self.last_round = None
        elif kind == MODEL_FINISHED:
            spent = Usage.read(event["usage"])
            self.usage += spent
            self.rounds += 1
            self.steps.append(None)
            self.round_start = self._item_count
            self.last_round = RoundFinished(event["reason"], spent, event["message"])
        elif kind == CONTEXT_COMPACTED:
            spent = Usage.read(event["usage"])
            self.usage += spent
            self.spent_on_summaries = spent + (self.spent_on_summaries or Usage())
        elif kind == TOOL_CALLED and event["output_index"] is None:
            self.hidden.append(event)
            self.steps.append(event)
        elif kind == TOOL_CALLED:
            self.shown[event["output_index"]] = event["call_id"]
        elif kind == ATTEMPT_STARTED:
            self.steps.append(None)
        elif kind == PROTOCOL_DEVIATION:
            self.deviations.append(event["name"])
        elif kind in TOLD_ONCE:
            self.told.add((kind, event["call_id"]))


class _ModelItems:
    """The output as the loop has it: calls as the model made them, and outputs behind all that was said at once."""

    def __init__(
        self, log: _AttemptsLog, output: list[Item], ledger: Mapping[str, ToolEvent]
    ) -> None:
        self.items: list[Item] = []
        self.pending: list[ToolCall] = []
        self._answered = output_ids(output)
        self._outputs: list[Item] = []
        for step in [*log.steps, None]:
            if step is None:
                self.items += self._outputs
                self._outputs = []
            elif isinstance(step, int):
                self._add(output[step], log.shown.get(step))
            else:
                self._add_hidden(step, ledger)

    def breaks_off_in_words(self, open_round: list[Item]) -> bool:
        """Thoughts behind the words change nothing; of calls that were cut, or ran, the model is told anyway."""
        for item in reversed(self.items):
            if item["type"] == "message":
                return _is_answer(item) and item in open_round and not self.pending
            if item["type"] in _TOLD_ANYWAY:
                return False
        return False

    def _add(self, item: Item, call_id: str | None) -> None:
        if item["type"] == "mcp_call" and call_id is not None:
            is_open = item["status"] == "in_progress"
            self._add_call(
                as_function_call(item, call_id),
                None if is_open else as_function_output(item, call_id),
            )
            return
        self.items.append(item)
        if (
            item["type"] in CALLS
            and item["status"] == "completed"
            and item["call_id"] not in self._answered
        ):
            self.pending.append(ToolCall(item["call_id"], item["name"], call_arguments(item)))

    def _add_hidden(self, event: Event, ledger: Mapping[str, ToolEvent]) -> None:
        call: Item = {
            "type": "function_call",
            "call_id": event["call_id"],
            "name": event["name"],
            "arguments": event["arguments"],
        }
        known = ledger.get(event["call_id"])
        output: Item | None = None
        if known is not None and known.is_over:
            output = {
                "type": "function_call_output",
                "call_id": event["call_id"],
                "output": shown(known.output),
            }
        self._add_call(call, output)

    def _add_call(self, call: Item, output: Item | None) -> None:
        self.items.append(call)
        if output is None:
            self.pending.append(ToolCall(call["call_id"], call["name"], call["arguments"]))
        else:
            self._outputs.append(output)


def _broken_off(output: list[Item], round_start: int) -> list[Item]:
    """What no usage tells of: an answer that a crash cut off, and what was cut off in the rounds before."""
    return [
        item
        for index, item in enumerate(output)
        if index >= round_start or item.get("status") == "incomplete"
    ]


def _chars_written(item: Item) -> int:
    """By the model: not by a tool or the user, and not in an item that only its upstream can read."""
    if item["type"] in ARGUMENTS_OF:
        return len(call_arguments(item))
    if item["type"] == "reasoning":
        return len(content_text_with_refusals(item["summary"]))
    if _is_answer(item):
        return len(content_text_with_refusals(item["content"]))
    return 0


def _is_answer(item: Item) -> bool:
    return bool(item["type"] == "message" and item["role"] == "assistant")
