"""What earlier attempts left in the log: where the agent loop goes on."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gateway_app.agent.context import as_function_call
from gateway_app.agent.loop import SoFar
from gateway_app.agent.tool_types import ToolCall
from gateway_app.agent.types import Item, RoundFinished, Usage
from gateway_app.runtime.ledger import TOLD_ONCE, shown
from gateway_app.runtime.recording import COMPACTED, MODEL_FINISHED, QUIRK
from responses_app.compactions import COMPACTION
from responses_app.events import TOOL_CALLED, Event
from responses_app.models import ToolEvent
from responses_app.output import OutputBuilder
from responses_app.tokens import tokens_of
from responses_app.tool_items import ARGUMENTS_OF, CALLS, OUTPUTS, all_call_ids, output_ids

_TOLD_ANYWAY = CALLS | OUTPUTS | {"mcp_call", COMPACTION}


@dataclass(frozen=True)
class Resumed(SoFar):
    """And what only this side needs to know."""

    hidden: frozenset[str] = frozenset()  # calls that are not shown
    told: frozenset[tuple[str, str]] = frozenset()  # of what is told once: event type and call id
    used_call_ids: frozenset[str] = frozenset()


def read_so_far(events: Iterable[Event], builder: OutputBuilder, ledger: Mapping[str, ToolEvent]) -> Resumed:
    """The builder has seen these events, and nothing of what was being said is open in it."""
    log = _Log(events)
    items: list[Item] = []
    pending: list[ToolCall] = []
    answered = output_ids(builder.output)
    for index, item in enumerate(builder.output):
        _add_hidden(log.hidden_before(index), ledger, items, pending)
        items.append(item)
        if item["type"] in CALLS and item["status"] == "completed" and item["call_id"] not in answered:
            pending.append(ToolCall(item["call_id"], item["name"], item[ARGUMENTS_OF[item["type"]]]))
        elif item["type"] == "mcp_call" and item["status"] == "in_progress" and index in log.shown:
            items[-1] = as_function_call(item, log.shown[index])
            pending.append(ToolCall(log.shown[index], items[-1]["name"], item["arguments"]))
    _add_hidden(log.hidden_before(None), ledger, items, pending)
    hidden = frozenset(str(call["call_id"]) for call in log.hidden)
    return Resumed(
        items=tuple(items),
        pending=tuple(pending),
        usage=log.usage,
        uncounted=sum(tokens_of(_chars_written(item)) for item in _broken_off(builder.output, log.round_start)),
        spent_on_summaries=log.spent_on_summaries,
        rounds=log.rounds,
        tool_calls=len(log.shown) + len(hidden),
        last_round=log.last_round,
        is_message_cut=not pending and _break_off_in_words(items, builder.output[log.round_start :]),
        hidden=hidden,
        told=frozenset(log.told),
        used_call_ids=frozenset(ledger) | all_call_ids(builder.output) | hidden | set(log.shown.values()),
    )


def read_spent(events: Iterable[Event]) -> tuple[Usage, list[str]]:
    """What the attempts before took, and their quirks: also for the end of a turn that asks no model again."""
    log = _Log(events)
    return log.usage, log.quirks


class _Log:
    def __init__(self, events: Iterable[Event]) -> None:
        self.usage = Usage()
        self.spent_on_summaries: Usage | None = None
        self.rounds = 0
        self.round_start = 0  # the first item that came after the last whole round
        self.last_round: RoundFinished | None = None
        self.shown: dict[int, str] = {}  # output index -> call id
        self.hidden: list[Event] = []
        self.quirks: list[str] = []
        self.told: set[tuple[str, str]] = set()
        self._item_count = 0
        for event in events:
            self._read(event)

    def _read(self, event: Event) -> None:
        kind = event["type"]
        if kind == "response.output_item.added":
            self._item_count += 1
            if event["item"]["type"] != "function_call_output":
                self.last_round = None
        elif kind == MODEL_FINISHED:
            spent = Usage(**event["usage"])
            self.usage += spent
            self.rounds += 1
            self.round_start = self._item_count
            self.last_round = RoundFinished(event["reason"], spent, event["message"])
        elif kind == COMPACTED:
            spent = Usage(**event["usage"])
            self.usage += spent
            self.spent_on_summaries = spent + (self.spent_on_summaries or Usage())
        elif kind == TOOL_CALLED and event["output_index"] is None:
            self.hidden.append({**event, "before": self._item_count})
        elif kind == TOOL_CALLED:
            self.shown[event["output_index"]] = event["call_id"]
        elif kind == QUIRK:
            self.quirks.append(event["name"])
        elif kind in TOLD_ONCE:
            self.told.add((kind, event["call_id"]))

    def hidden_before(self, index: int | None) -> list[Event]:
        """Calls made before the item of that index; None means behind them all."""
        place = self._item_count if index is None else index
        return [call for call in self.hidden if call["before"] == place]


def _break_off_in_words(items: Iterable[Item], open_round: list[Item]) -> bool:
    """Thoughts behind the words change nothing; of a call that was cut, or of its output, the model is told anyway."""
    for item in reversed(list(items)):
        if item["type"] == "message":
            return _is_answer(item) and item in open_round
        if item["type"] in _TOLD_ANYWAY:
            return False
    return False


def _broken_off(output: list[Item], round_start: int) -> list[Item]:
    """What no usage tells of: an answer that a crash cut off, and what was cut off in the rounds before."""
    return [item for index, item in enumerate(output) if index >= round_start or item.get("status") == "incomplete"]


def _chars_written(item: Item) -> int:
    """By the model: not by a tool or the user, and not in an item that only its upstream can read."""
    if item["type"] in ARGUMENTS_OF:
        return len(item.get(ARGUMENTS_OF[item["type"]]) or "")
    parts = item["summary"] if item["type"] == "reasoning" else item["content"] if _is_answer(item) else ()
    return sum(len(part.get("text") or part.get("refusal") or "") for part in parts)


def _is_answer(item: Item) -> bool:
    return item["type"] == "message" and item["role"] == "assistant"


def _add_hidden(
    calls: list[Event], ledger: Mapping[str, ToolEvent], items: list[Item], pending: list[ToolCall]
) -> None:
    for call in calls:
        named = {"call_id": call["call_id"], "name": call["name"], "arguments": call["arguments"]}
        items.append({"type": "function_call", **named})
        known = ledger.get(call["call_id"])
        if known is not None and known.is_over:
            items.append({"type": "function_call_output", "call_id": call["call_id"], "output": shown(known.output)})
        else:
            pending.append(ToolCall(**named))
