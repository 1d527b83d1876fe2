"""Reads what earlier attempts left in the log, so that the agent loop goes on behind it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from gateway_app.agent.events import RoundFinished, UpstreamPosition, Usage
from gateway_app.agent.loop import TurnProgress
from gateway_app.agent.model_call import ResumePoint
from gateway_app.runtime.model_items import ModelItems
from gateway_app.runtime.open_round import OpenRound, is_answer
from gateway_app.runtime.tool_runner import NOTED_ONCE
from gateway_app.runtime.unseen_calls import ALL_SEEN, UnseenCalls, from_log
from gateway_app.runtime.upstream_log import UpstreamLog
from gateway_app.runtime.visible_results import DEFAULT_CAP, ResultCap
from responses_app.eventlog import Segment, decode_log, first_output_at, read_whole
from responses_app.models import ToolEvent
from responses_app.protocol.builder import OutputBuilder
from responses_app.protocol.events import (
    ATTEMPT_STARTED,
    CONTEXT_COMPACTED,
    ITEM_ADDED,
    MODEL_FINISHED,
    MODEL_STARTED,
    PROTOCOL_DEVIATION,
    TOOL_CALLED,
    UPSTREAM_ABANDONED,
    Event,
)
from responses_app.protocol.item_states import with_states
from responses_app.protocol.items import (
    Item,
    all_call_ids,
    item_text,
)

_SPENT = (MODEL_STARTED, MODEL_FINISHED, CONTEXT_COMPACTED)


@dataclass(frozen=True)
class ResumedTurn(TurnProgress):
    """The progress, and what the recorder and the tool runner need of earlier attempts."""

    unseen: UnseenCalls = ALL_SEEN
    noted: frozenset[tuple[str, str]] = frozenset()  # type and call id of events of NOTED_ONCE
    used_call_ids: frozenset[str] = frozenset()
    resume: ResumePoint | None = None  # of an answer that may still run at its upstream


@dataclass(frozen=True)
class EarlierAttempts:
    """The log so far; read and rebuilt in a thread, as a long log takes a second."""

    events: list[Event]
    builder: OutputBuilder
    usage: Usage
    open_round: OpenRound  # of an answer that runs on at its upstream; otherwise empty
    deviations: list[str]
    first_output_at: datetime | None
    upstream: UpstreamPosition | None = None  # of an answer that was not received to its end


def read_attempts(response_id: str) -> EarlierAttempts:
    return attempts_in(response_id, read_whole(response_id))


def first_attempt(response_id: str, opening: list[Event]) -> EarlierAttempts:
    """A turn that was claimed as it was admitted: its log has the events of the admission alone."""
    builder = OutputBuilder(response_id, opening)
    return EarlierAttempts([], builder, Usage(), OpenRound(), [], None)


def attempts_in(response_id: str, segments: list[Segment]) -> EarlierAttempts:
    events = list(decode_log(segments))
    builder = OutputBuilder(response_id, events)
    log = _AttemptsLog(events, builder.output)
    return EarlierAttempts(
        events,
        builder,
        log.usage,
        log.open_round,
        log.deviations,
        first_output_at(segments),
        log.upstream.position,
    )


def read_progress(
    events: Iterable[Event],
    builder: OutputBuilder,
    ledger: Mapping[str, ToolEvent],
    cap: ResultCap = DEFAULT_CAP,
) -> ResumedTurn:
    """``builder`` was built from these events, and has no open message or reasoning."""
    states = builder.snapshot.states
    output = with_states(builder.output, states.stored())
    log = _AttemptsLog(events, output)
    model_items = ModelItems(log.steps, log.shown, output, ledger, states, cap)
    unseen = from_log(log.hidden)
    used = {*unseen.hidden, *unseen.held, *log.shown.values()}
    return ResumedTurn(
        items=tuple(model_items.items),
        pending=tuple(model_items.pending),
        usage=log.usage,
        open_usage=log.open_usage,
        spent_on_summaries=log.spent_on_summaries,
        rounds=log.rounds,
        tool_calls=len(log.shown) + len(log.hidden),
        last_round=log.last_round,
        is_answer_empty=log.is_answer_empty,
        is_asked_again=log.answers > 1,
        cut_at=model_items.cut_at(output[log.round_start :]),
        unseen=unseen,
        noted=frozenset(log.noted),
        used_call_ids=frozenset(ledger) | all_call_ids(output) | used,
        resume=log.upstream.resume_point(),
    )


def read_spent(events: Iterable[Event], output: list[Item]) -> tuple[Usage, list[str]]:
    """The usage of earlier attempts, and the deviations of their models.

    ``output`` has the items of these events. A round that broke off is estimated from them.
    """
    log = _AttemptsLog(events, output)
    return log.usage, log.deviations


class _AttemptsLog:
    """The facts that the events of earlier attempts hold."""

    def __init__(self, events: Iterable[Event], output: list[Item]) -> None:
        self.usage = Usage()
        self.spent_on_summaries: Usage | None = None
        self.rounds = 0
        self.round_start = 0  # the first item that came after the last whole round
        self.last_round: RoundFinished | None = None
        self.is_answer_empty = False  # that of the last whole round
        self.answers = 0  # rounds without calls
        self.shown: dict[int, str] = {}  # output index -> call id
        self.hidden: list[Event] = []
        # The index of an item, the event of a hidden call, or None where a round or attempt ends.
        self.steps: list[int | Event | None] = []
        self.deviations: list[str] = []
        self.noted: set[tuple[str, str]] = set()
        self.upstream = UpstreamLog()
        self._item_count = 0
        self._output = output
        self.open_round = OpenRound()
        for event in events:
            self._read(event)
        self._end_attempt()
        self.open_usage = self.open_round.usage(self._output[: self._item_count])

    def _end_attempt(self) -> None:
        """An answer that runs on at its upstream is counted there, when it is picked up."""
        if self.upstream.resume_point() is None:
            self._cut_round()

    def _cut_round(self) -> None:
        """An attempt ended in its last round, which no upstream has counted."""
        self.usage += self.open_round.usage(self._output[: self._item_count])
        self.open_round.end(self._item_count)

    def _read(self, event: Event) -> None:
        kind = event["type"]
        self.upstream.read(event)
        if kind == ITEM_ADDED:
            self._item_count += 1
            self.steps.append(event["output_index"])
            if event["item"]["type"] != "function_call_output":
                self.last_round = None
        elif kind in _SPENT:
            self._read_spent(event)
        elif kind == TOOL_CALLED and event["output_index"] is None:
            self.hidden.append(event)
            self.steps.append(event)
        elif kind == TOOL_CALLED:
            self._read_shown(event["call_id"], event["output_index"])
        elif kind == UPSTREAM_ABANDONED:
            self._cut_round()
        elif kind == ATTEMPT_STARTED:
            self._end_attempt()
            self.steps.append(None)
        elif kind == PROTOCOL_DEVIATION:
            self.deviations.append(event["name"])
        elif kind in NOTED_ONCE:
            self.noted.add((kind, event["call_id"]))

    def _read_shown(self, call_id: str, index: int) -> None:
        """An item that a held call got later stands where the model made the call."""
        self.shown[index] = call_id
        for held in self.hidden:
            if held["call_id"] == call_id:
                self.hidden.remove(held)
                self.steps.remove(index)
                self.steps[self.steps.index(held)] = index
                return

    def _read_spent(self, event: Event) -> None:
        kind = event["type"]
        if kind == MODEL_STARTED:
            self.open_round.begin_answer(event["input_tokens"])
            return
        spent = Usage.read(event["usage"])
        self.usage += spent
        self.open_round.end(self._item_count)
        if kind == CONTEXT_COMPACTED:
            self.spent_on_summaries = spent + (self.spent_on_summaries or Usage())
            return
        self.rounds += 1
        self.answers += event["reason"] == "stop"
        self.is_answer_empty = not any(
            map(_answer_text, self._output[self.round_start : self._item_count])
        )
        self.steps.append(None)
        self.round_start = self._item_count
        self.last_round = RoundFinished(event["reason"], spent, event["message"])


def _answer_text(item: Item) -> str:
    return item_text(item).strip() if is_answer(item) else ""
