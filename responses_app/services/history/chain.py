"""The turns that lead to a response."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from responses_app.models import InputItem, Response
from responses_app.protocol.item_states import StoredState, with_states
from responses_app.protocol.items import COMPACTION, Item
from responses_app.services.history.chain_values import PAGE_TURNS, ids_back
from responses_app.services.history.resent_history import chat_form

FIELDS = ("pk", "previous_id", "output", "provider_state", "deleted_at", "context_tokens")


@dataclass(frozen=True)
class Turn:
    response_id: str
    previous_id: str | None
    input: list[Item]
    output: list[Item]
    states: list[StoredState] | None
    is_counted: bool  # its row holds where the nearest compaction is

    @property
    def items(self) -> list[Item]:
        """For a model: outputs carry the state of their provider."""
        return self.input + with_states(self.output, self.states)


def turns_back(previous_id: str | None, first_page: int = PAGE_TURNS[0]) -> Iterator[Turn]:
    """The chain from ``previous_id`` to its beginning; deleted turns are left out."""
    for page in ids_back(previous_id, first_page):
        yield from _turns(page)


def turns_before(previous_id: str | None) -> list[Turn]:
    """The whole chain, oldest turn first."""
    turns = list(turns_back(previous_id))
    turns.reverse()
    return turns


def ids_before(previous_id: str | None) -> list[str]:
    """Of the whole chain, oldest first; deleted turns are among them."""
    ids: list[str] = []
    for page in ids_back(previous_id):
        ids += page
    ids.reverse()
    return ids


def _turns(ids: list[str]) -> Iterator[Turn]:
    rows = {row["pk"]: row for row in Response.objects.filter(pk__in=ids).values(*FIELDS)}
    inputs = inputs_of(ids)
    for response_id in ids:
        row = rows.get(response_id)
        if row is not None and row["deleted_at"] is None:
            yield Turn(
                response_id=response_id,
                previous_id=row["previous_id"],
                input=inputs[response_id],
                output=row["output"] or [],
                states=row["provider_state"],
                is_counted=row["context_tokens"] is not None,
            )


class ChainHistory:
    """The items that a turn of a chain continues."""

    def __init__(self, previous_id: str | None) -> None:
        self._previous_id = previous_id
        self._last: Turn | None = None
        self.compaction_at = ""  # the nearest turn with a compaction, of those that were read

    def back(self) -> Iterator[list[Item]]:
        """The items of each turn, newest turn first, read only as far as the caller iterates."""
        for turn in turns_back(self._previous_id):
            self._last = turn
            if not self.compaction_at and _compactions(turn):
                self.compaction_at = turn.response_id
            yield turn.items

    def compactions_back(self) -> Iterator[Item]:
        """Those before the last turn that was read, newest first; turns between are not read."""
        if self._last is None:
            return
        at = self._last.previous_id
        while at is not None:
            start = _nearest_compaction(at)
            at = None
            for turn in turns_back(start, first_page=1):
                yield from reversed(_compactions(turn))
                if turn.is_counted:
                    at = turn.previous_id
                    break


def _nearest_compaction(response_id: str) -> str | None:
    """The nearest turn with a compaction, up to this one; this one if its row has no count."""
    rows = Response.objects.filter(pk=response_id)
    found = rows.values_list("compaction_at", "context_tokens").first()
    if found is None:
        return None
    compaction_at, tokens = found
    if tokens is None:
        return response_id
    return compaction_at or None


def _compactions(turn: Turn) -> list[Item]:
    return [item for item in turn.items if item["type"] == COMPACTION]


def input_of(response_id: str) -> list[Item]:
    rows = InputItem.objects.filter(response_id=response_id).order_by("position")
    return list(rows.values_list("item", flat=True))


def inputs_of(response_ids: Collection[str]) -> dict[str, list[Item]]:
    """The input of several responses, with one query."""
    inputs: dict[str, list[Item]] = {response_id: [] for response_id in response_ids}
    rows = InputItem.objects.filter(response_id__in=inputs).order_by("response_id", "position")
    for response_id, item in rows.values_list("response_id", "item"):
        inputs[response_id].append(item)
    return inputs


def sent_items(row: Response) -> list[Item]:
    """The input as the client sent it; the turns that it repeats hold the repeated items."""
    own = input_of(row.pk)
    if not row.is_history_resent:
        return own
    sent: list[Item] = []
    for turn in turns_before(row.previous_id):
        sent += turn.input
        if row.is_history_in_chat_form:
            sent += chat_form(turn.output)
        else:
            sent += turn.output
    return sent + own
