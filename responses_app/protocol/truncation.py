"""What stays of a conversation that does not fit: whole turns are dropped, then whole rounds.

A call never loses its output, nor an output its call: upstreams refuse one without the other.
"""

from responses_app.protocol.items import CALLS, MARK, OUTPUTS, Item
from responses_app.protocol.sent_reasoning import SentReasoning, request_sizes
from responses_app.protocol.token_estimate import item_tokens

RULE_ROLES = ("system", "developer")


def newest_that_fit(older: list[Item], room: int) -> list[Item]:
    """The older items without the oldest turns, as many as must go; summaries stay."""
    sizes = [item_tokens(item) for item in older]
    tokens = sum(sizes)
    if tokens <= room:
        return older
    for start, item in enumerate(older):
        if start and item.get("role") == "user" and tokens <= room:
            return _summaries(older[:start]) + older[start:]
        if MARK not in item:
            tokens -= sizes[start]
    return _summaries(older)


def fitted(items: list[Item], room: int, sent: SentReasoning = SentReasoning.LOOP) -> list[Item]:
    """A whole conversation without its oldest turns, then without the oldest rounds of the last.

    Rules, summaries, the user's last messages and the last round stay, even if they do not fit.
    """
    sizes = _Sizes(items, sent)
    tokens = sizes.of(items)
    turns = _turns(items)
    kept: list[Item] = []
    for turn in turns[:-1]:
        if tokens <= room:
            kept += turn
            continue
        staying = [item for item in turn if _stays(item)]
        kept += staying
        tokens -= sizes.of(turn) - sizes.of(staying)
    return kept + _fitted_turn(turns[-1], tokens, room, sizes)


class _Sizes:
    """Of the items of one request; where an item stands in it decides what is sent of it."""

    def __init__(self, items: list[Item], sent: SentReasoning) -> None:
        self._by_item: dict[int, int] = {}
        for item, size in zip(items, request_sizes(items, sent), strict=True):
            self._by_item[id(item)] = size

    def of(self, items: list[Item]) -> int:
        return sum(self._by_item[id(item)] for item in items)


def question_of(items: list[Item]) -> list[Item]:
    """The messages at the end that no model has answered."""
    start = len(items)
    while start and items[start - 1].get("role") in (*RULE_ROLES, "user"):
        start -= 1
    return items[start:]


def _fitted_turn(turn: list[Item], tokens: int, room: int, sizes: _Sizes) -> list[Item]:
    rounds = _rounds(turn)
    kept = list(rounds[0])  # the user's messages
    for number, items in enumerate(rounds[1:], 1):
        is_last = number == len(rounds) - 1
        if is_last or tokens <= room:
            kept += items
            continue
        staying = [item for item in items if _stays(item) or _is_from_user(item)]
        kept += staying
        tokens -= sizes.of(items) - sizes.of(staying)
    return kept


def _turns(items: list[Item]) -> list[list[Item]]:
    """Each begins with messages of the user, but the first may not; the last has the question."""
    turns: list[list[Item]] = [[]]
    for position, item in enumerate(items):
        is_behind_user = position > 0 and _is_from_user(items[position - 1])
        begins = _is_from_user(item) and not is_behind_user
        if begins and turns[-1] and not _open_calls(turns[-1]):
            turns.append([])
        turns[-1].append(item)
    return turns


def _rounds(turn: list[Item]) -> list[list[Item]]:
    """The user's messages, then each answer of the model with the outputs of its calls."""
    rounds: list[list[Item]] = [[]]
    for position, item in enumerate(turn):
        if _is_from_user(item) and len(rounds) == 1:
            rounds[0].append(item)
            continue
        is_behind_output = position > 0 and turn[position - 1]["type"] in OUTPUTS
        begins = item["type"] not in OUTPUTS and is_behind_output
        if len(rounds) == 1 or (begins and not _open_calls(rounds[-1])):
            rounds.append([])
        rounds[-1].append(item)
    return rounds


def _open_calls(items: list[Item]) -> set[str]:
    """The ids of calls whose outputs are still to come."""
    opened = {item["call_id"] for item in items if item["type"] in CALLS}
    return opened - {item["call_id"] for item in items if item["type"] in OUTPUTS}


def _is_from_user(item: Item) -> bool:
    return item.get("role") == "user" and MARK not in item and not item.get("is_note")


def _stays(item: Item) -> bool:
    return MARK in item or item.get("role") in RULE_ROLES


def _summaries(items: list[Item]) -> list[Item]:
    return [item for item in items if MARK in item]
