"""Reads what earlier attempts left in the log, so that the agent loop goes on behind it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from gateway_app.agent.context import as_function_call, as_function_output
from gateway_app.agent.events import RoundFinished, Usage
from gateway_app.agent.loop import TurnProgress
from gateway_app.agent.tools import ToolCall
from gateway_app.runtime.tool_runner import NOTED_ONCE, visible_output
from responses_app.eventlog import Segment, decode_log, first_output_at, read_whole
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
from responses_app.protocol.item_states import ItemStates, with_states
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

# Behind one of these a model knows by itself that its message before was cut.
_ENDS_MESSAGE = CALLS | OUTPUTS | {"mcp_call", COMPACTION}


@dataclass(frozen=True)
class ResumedTurn(TurnProgress):
    """The progress, and what the recorder and the tool runner need of earlier attempts."""

    hidden: frozenset[str] = frozenset()  # ids of calls that clients do not see
    noted: frozenset[tuple[str, str]] = frozenset()  # type and call id of events of NOTED_ONCE
    used_call_ids: frozenset[str] = frozenset()


@dataclass(frozen=True)
class EarlierAttempts:
    """The log so far; read and rebuilt in a thread, as a long log takes a second."""

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
    builder = OutputBuilder(response_id, events)
    return EarlierAttempts(events, builder, usage, deviations, first_output_at(segments))


def read_progress(
    events: Iterable[Event], builder: OutputBuilder, ledger: Mapping[str, ToolEvent]
) -> ResumedTurn:
    """``builder`` was built from these events, and has no open message or reasoning."""
    log = _AttemptsLog(events)
    states = builder.snapshot.states
    output = with_states(builder.output, states.stored())
    model_items = _ModelItems(log, output, ledger, states)
    hidden = {str(call["call_id"]) for call in log.hidden}
    shown = set(log.shown.values())
    return ResumedTurn(
        items=tuple(model_items.items),
        pending=tuple(model_items.pending),
        usage=log.usage,
        uncounted=_uncounted_tokens(output, log.round_start),
        spent_on_summaries=log.spent_on_summaries,
        rounds=log.rounds,
        tool_calls=len(log.shown) + len(hidden),
        last_round=log.last_round,
        is_message_cut=model_items.ends_in_cut_message(output[log.round_start :]),
        hidden=frozenset(hidden),
        noted=frozenset(log.noted),
        used_call_ids=frozenset(ledger) | all_call_ids(output) | hidden | shown,
    )


def read_spent(events: Iterable[Event]) -> tuple[Usage, list[str]]:
    """The usage of earlier attempts, and the deviations of their models."""
    log = _AttemptsLog(events)
    return log.usage, log.deviations


class _AttemptsLog:
    """The facts that the events of earlier attempts hold."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.usage = Usage()
        self.spent_on_summaries: Usage | None = None
        self.rounds = 0
        self.round_start = 0  # the first item that came after the last whole round
        self.last_round: RoundFinished | None = None
        self.shown: dict[int, str] = {}  # output index -> call id
        self.hidden: list[Event] = []
        # The index of an item, the event of a hidden call, or None where a round or attempt ends.
        self.steps: list[int | Event | None] = []
        self.deviations: list[str] = []
        self.noted: set[tuple[str, str]] = set()
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
        elif kind in NOTED_ONCE:
            self.noted.add((kind, event["call_id"]))


class _ModelItems:
    """The output as the loop keeps it: calls as the model made them, outputs behind their round."""

    def __init__(
        self,
        log: _AttemptsLog,
        output: list[Item],
        ledger: Mapping[str, ToolEvent],
        states: ItemStates,
    ) -> None:
        self.items: list[Item] = []
        self.pending: list[ToolCall] = []
        self._states = states
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

    def ends_in_cut_message(self, open_round: list[Item]) -> bool:
        """Reasoning behind the message makes no difference."""
        for item in reversed(self.items):
            if item["type"] == "message":
                return _is_answer(item) and item in open_round and not self.pending
            if item["type"] in _ENDS_MESSAGE:
                return False
        return False

    def _add(self, item: Item, call_id: str | None) -> None:
        if item["type"] == "mcp_call" and call_id is not None:
            output = None
            if item["status"] != "in_progress":
                output = as_function_output(item, call_id)
            self._add_call(as_function_call(item, call_id), output)
            return
        self.items.append(item)
        is_whole_call = item["type"] in CALLS and item["status"] == "completed"
        if is_whole_call and item["call_id"] not in self._answered:
            self.pending.append(ToolCall(item["call_id"], item["name"], call_arguments(item)))

    def _add_hidden(self, event: Event, ledger: Mapping[str, ToolEvent]) -> None:
        call: Item = {
            "type": "function_call",
            "call_id": event["call_id"],
            "name": event["name"],
            "arguments": event["arguments"],
        }
        state = self._states.of_hidden_call(event["call_id"])
        if state is not None:
            call["provider_state"] = state
        known = ledger.get(event["call_id"])
        output: Item | None = None
        if known is not None and known.is_over:
            output = {
                "type": "function_call_output",
                "call_id": event["call_id"],
                "output": visible_output(known.output),
            }
        self._add_call(call, output)

    def _add_call(self, call: Item, output: Item | None) -> None:
        self.items.append(call)
        if output is None:
            self.pending.append(ToolCall(call["call_id"], call["name"], call["arguments"]))
        else:
            self._outputs.append(output)


def _uncounted_tokens(output: list[Item], round_start: int) -> int:
    """An estimate of what no usage counts: the round that a crash cut off, and other cut items."""
    tokens = 0
    for index, item in enumerate(output):
        if index >= round_start or item.get("status") == "incomplete":
            tokens += tokens_of(_chars_written(item))
    return tokens


def _chars_written(item: Item) -> int:
    """By the model: not by a tool or the user, nor in an item that only its upstream can read."""
    if item["type"] in ARGUMENTS_OF:
        return len(call_arguments(item))
    if item["type"] == "reasoning":
        return len(content_text_with_refusals(item["summary"]))
    if _is_answer(item):
        return len(content_text_with_refusals(item["content"]))
    return 0


def _is_answer(item: Item) -> bool:
    return bool(item["type"] == "message" and item["role"] == "assistant")
