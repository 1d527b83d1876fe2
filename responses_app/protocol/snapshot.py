"""The response object as a fold over its events."""

from collections.abc import Callable, Iterable
from typing import Any

from responses_app.protocol import events
from responses_app.protocol.events import LIFECYCLE_TYPES, TERMINAL_TYPES, Event
from responses_app.protocol.items import Item
from responses_app.protocol.response_object import ResponseBody
from responses_app.protocol.text_buffer import TextBuffer

# A text that grows: the object that holds it, and the key under which it does.
_Place = tuple[int, str, int]


class Snapshot:
    """Applies events one by one; ``body()`` is the response as these events tell it.

    Texts are put together when somebody looks, so that a long one costs linear time.
    """

    def __init__(self) -> None:
        self._base: ResponseBody = {}
        self._items: list[Item] = []
        self._growing: dict[_Place, TextBuffer] = {}
        self._with_logprobs: set[int] = set()  # messages; each has one part
        self.is_final = False

    def apply(self, event: Event) -> None:
        kind = event["type"]
        if kind in LIFECYCLE_TYPES:
            self._base = event["response"]
            if kind in TERMINAL_TYPES:
                self._items = list(self._base["output"])
                self._growing.clear()
                self.is_final = True
            return
        step = _STEPS.get(kind)
        if step is not None:
            step(self, event)

    def body(self) -> ResponseBody:
        return {**self._base, "output": list(self.output())}

    def detached_body(self) -> ResponseBody:
        """``body()`` as of now: no later event changes it."""
        return {**self._base, "output": [_copy_item(item) for item in self.output()]}

    def output(self) -> list[Item]:
        for (index, field, part), text in self._growing.items():
            _holder(self._items[index], field, part)[_LEAF[field]] = text.text()
        return self._items

    @property
    def item_count(self) -> int:
        return len(self._items)

    def item(self, index: int) -> Item:
        """One item, with its texts as of its last change of shape; ``output()`` has them whole."""
        return self._items[index]

    def _item_added(self, event: Event) -> None:
        self._items.append(_copy_item(event["item"]))

    def _item_done(self, event: Event) -> None:
        index = event["output_index"]
        self._items[index] = event["item"]
        for place in [place for place in self._growing if place[0] == index]:
            del self._growing[place]

    def _part_added(self, event: Event) -> None:
        self._items[event["output_index"]]["content"].append(dict(event["part"]))

    def _annotation_added(self, event: Event) -> None:
        part = self._items[event["output_index"]]["content"][event["content_index"]]
        part["annotations"] = [*part["annotations"], event["annotation"]]

    def _text_said(self, event: Event) -> None:
        index, part_index = event["output_index"], event["content_index"]
        self._grow((index, "text", part_index), event["delta"])
        if event.get("logprobs"):
            part = self._items[index]["content"][part_index]
            if (
                index not in self._with_logprobs
            ):  # the list that came with the part belongs to its event
                self._with_logprobs.add(index)
                part["logprobs"] = list(part.get("logprobs") or ())
            part["logprobs"] += event["logprobs"]

    def _summary_added(self, event: Event) -> None:
        self._items[event["output_index"]]["summary"].append(dict(event["part"]))

    def _grow(self, place: _Place, delta: str) -> None:
        text = self._growing.get(place)
        if text is None:
            index, field, part = place
            text = self._growing[place] = TextBuffer(
                _holder(self._items[index], field, part)[_LEAF[field]]
            )
        text.add(delta)


# Growing field -> the key of its text inside the object that holds it.
_LEAF = {
    "text": "text",
    "refusal": "refusal",
    "summary": "text",
    "arguments": "arguments",
    "input": "input",
}


def _holder(item: Item, field: str, part: int) -> dict[str, Any]:
    if field in ("arguments", "input"):
        return item
    holder: dict[str, Any] = item["summary" if field == "summary" else "content"][part]
    return holder


def _copy_item(item: Item) -> Item:
    copied = dict(item)
    for key in ("content", "summary"):
        if isinstance(copied.get(key), list):
            copied[key] = [_copy_part(part) for part in copied[key]]
    return copied


def _copy_part(part: Item) -> Item:
    copied = dict(part)
    if copied.get("logprobs"):
        copied["logprobs"] = list(copied["logprobs"])
    return copied


def _grows(
    field: str, part_key: str | None, value_key: str = "delta"
) -> Callable[[Snapshot, Event], None]:
    def step(snapshot: Snapshot, event: Event) -> None:
        part = event[part_key] if part_key else 0
        snapshot._grow((event["output_index"], field, part), event[value_key])

    return step


_STEPS: dict[str, Callable[[Snapshot, Event], None]] = {
    events.ITEM_ADDED: Snapshot._item_added,
    events.ITEM_DONE: Snapshot._item_done,
    events.PART_ADDED: Snapshot._part_added,
    events.SUMMARY_PART_ADDED: Snapshot._summary_added,
    events.TEXT_DELTA: Snapshot._text_said,
    events.REFUSAL_DELTA: _grows("refusal", "content_index"),
    events.SUMMARY_DELTA: _grows("summary", "summary_index"),
    events.ARGUMENTS_DELTA: _grows("arguments", None),
    events.MCP_ARGUMENTS_DELTA: _grows("arguments", None),
    events.CUSTOM_INPUT_DELTA: _grows("input", None),
    events.ANNOTATION_ADDED: Snapshot._annotation_added,
}


def fold(log: Iterable[Event]) -> ResponseBody:
    snapshot = Snapshot()
    for event in log:
        snapshot.apply(event)
    return snapshot.body()
