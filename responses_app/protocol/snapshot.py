"""The response object as a fold over its events."""

from collections.abc import Callable, Iterable

from responses_app.protocol import events
from responses_app.protocol.events import LIFECYCLE_TYPES, TERMINAL_TYPES, Event
from responses_app.protocol.item_states import ItemStates
from responses_app.protocol.items import ContentPart, Item
from responses_app.protocol.response_object import ResponseBody
from responses_app.protocol.text_buffer import TextBuffer

# A text that deltas extend: its output index, its field, and the index of its part.
_TextKey = tuple[int, str, int]


class Snapshot:
    """Applies events one by one; ``body()`` is the response after them.

    Deltas are joined only when the output is read, so that a long text costs linear time.
    """

    def __init__(self) -> None:
        self._base: ResponseBody = {}
        self._items: list[Item] = []
        self._buffers: dict[_TextKey, TextBuffer] = {}
        self._with_logprobs: set[int] = set()  # messages; each has one part
        self.states = ItemStates()  # beside the items, and never in the body
        self.is_final = False

    def apply(self, event: Event) -> None:
        kind = event["type"]
        if kind in LIFECYCLE_TYPES:
            self._base = event["response"]
            if kind in TERMINAL_TYPES:
                self._items = list(self._base["output"])
                self._buffers.clear()
                self.is_final = True
            return
        step = _STEPS.get(kind)
        if step is not None:
            step(self, event)

    def body(self) -> ResponseBody:
        body = self._base.copy()
        body["output"] = list(self.output())
        return body

    def detached_body(self) -> ResponseBody:
        """``body()`` as of now: no later event changes it."""
        body = self._base.copy()
        body["output"] = [_copy_item(item) for item in self.output()]
        return body

    def output(self) -> list[Item]:
        for (index, field, part), buffer in self._buffers.items():
            _write_text(self._items[index], field, part, buffer.text())
        return self._items

    @property
    def item_count(self) -> int:
        return len(self._items)

    def item(self, index: int) -> Item:
        """One item, with its texts as of its last change of shape; ``output()`` has them whole."""
        return self._items[index]

    def buffer(self, index: int, field: str, part: int = 0) -> TextBuffer:
        """A text that grows; what is added to it counts as the deltas of events."""
        key = (index, field, part)
        buffer = self._buffers.get(key)
        if buffer is None:
            buffer = TextBuffer(_read_text(self._items[index], field, part))
            self._buffers[key] = buffer
        return buffer

    # -- one step per event type --------------------------------------------------------
    def _item_added(self, event: Event) -> None:
        self._items.append(_copy_item(event["item"]))

    def _item_done(self, event: Event) -> None:
        index = event["output_index"]
        self._items[index] = event["item"]
        for key in list(self._buffers):
            if key[0] == index:
                del self._buffers[key]

    def _part_added(self, event: Event) -> None:
        self._content(event["output_index"]).append(event["part"].copy())

    def _annotation_added(self, event: Event) -> None:
        part = self._content(event["output_index"])[event["content_index"]]
        # The list that came with the part belongs to its event: replace it, never change it.
        part["annotations"] = part["annotations"] + [event["annotation"]]

    def _text_delta(self, event: Event) -> None:
        index, part_index = event["output_index"], event["content_index"]
        self._extend((index, "text", part_index), event["delta"])
        logprobs = event.get("logprobs")
        if logprobs:
            part = self._content(index)[part_index]
            if index not in self._with_logprobs:
                # The list that came with the part belongs to its event.
                self._with_logprobs.add(index)
                part["logprobs"] = list(part.get("logprobs") or ())
            part["logprobs"] += logprobs

    def _refusal_delta(self, event: Event) -> None:
        self._extend((event["output_index"], "refusal", event["content_index"]), event["delta"])

    def _summary_added(self, event: Event) -> None:
        self._items[event["output_index"]]["summary"].append(event["part"].copy())

    def _summary_delta(self, event: Event) -> None:
        self._extend((event["output_index"], "summary", event["summary_index"]), event["delta"])

    def _arguments_delta(self, event: Event) -> None:
        self._extend((event["output_index"], "arguments", 0), event["delta"])

    def _input_delta(self, event: Event) -> None:
        self._extend((event["output_index"], "input", 0), event["delta"])

    def _item_state(self, event: Event) -> None:
        self.states.apply(event)

    def _content(self, index: int) -> list[ContentPart]:
        content = self._items[index]["content"]
        assert not isinstance(content, str)  # the server's own messages have parts
        return content

    def _extend(self, key: _TextKey, delta: str) -> None:
        index, field, part = key
        self.buffer(index, field, part).add(delta)


_STEPS: dict[str, Callable[[Snapshot, Event], None]] = {
    events.ITEM_ADDED: Snapshot._item_added,
    events.ITEM_DONE: Snapshot._item_done,
    events.PART_ADDED: Snapshot._part_added,
    events.SUMMARY_PART_ADDED: Snapshot._summary_added,
    events.TEXT_DELTA: Snapshot._text_delta,
    events.REFUSAL_DELTA: Snapshot._refusal_delta,
    events.SUMMARY_DELTA: Snapshot._summary_delta,
    events.REASONING_DELTA: Snapshot._text_delta,
    events.ARGUMENTS_DELTA: Snapshot._arguments_delta,
    events.MCP_ARGUMENTS_DELTA: Snapshot._arguments_delta,
    events.CUSTOM_INPUT_DELTA: Snapshot._input_delta,
    events.ANNOTATION_ADDED: Snapshot._annotation_added,
    events.ITEM_STATE: Snapshot._item_state,
}


def _read_text(item: Item, field: str, part: int) -> str:
    if field == "arguments":
        return item["arguments"]
    if field == "input":
        return item["input"]
    if field == "summary":
        return item["summary"][part]["text"]
    content = item["content"]
    assert not isinstance(content, str)
    if field == "refusal":
        return content[part]["refusal"]
    return content[part]["text"]


def _write_text(item: Item, field: str, part: int, text: str) -> None:
    if field == "arguments":
        item["arguments"] = text
    elif field == "input":
        item["input"] = text
    elif field == "summary":
        item["summary"][part]["text"] = text
    else:
        content = item["content"]
        assert not isinstance(content, str)
        if field == "refusal":
            content[part]["refusal"] = text
        else:
            content[part]["text"] = text


def _copy_item(item: Item) -> Item:
    """With parts of its own: deltas change them, and the item of an event never changes."""
    copied = item.copy()
    content = copied.get("content")
    if isinstance(content, list):
        copied["content"] = [_copy_part(part) for part in content]
    summary = copied.get("summary")
    if isinstance(summary, list):
        copied["summary"] = [_copy_part(part) for part in summary]
    return copied


def _copy_part(part: ContentPart) -> ContentPart:
    copied = part.copy()
    if copied.get("logprobs"):
        copied["logprobs"] = list(copied["logprobs"])
    return copied


def fold(log: Iterable[Event]) -> ResponseBody:
    snapshot = Snapshot()
    for event in log:
        snapshot.apply(event)
    return snapshot.body()
