"""Context: the conversation in the form that models take."""

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from gateway_app.agent.approval_items import OWN_LABEL, as_function_call, with_requested_calls
from responses_app.protocol.closing import INTERRUPTED
from responses_app.protocol.items import (
    CALLS,
    MARK,
    OUTPUT_OF,
    OUTPUTS,
    SUMMARY,
    Content,
    ContentPart,
    Item,
    call_arguments,
    dangling_reasoning,
    is_from_model,
)


def build_items(
    items: Iterable[Item],
    own_labels: Collection[str] = (OWN_LABEL,),
    pending: Collection[str] = (),
    outputs: Mapping[str, str] = MappingProxyType({}),
) -> tuple[list[Item], tuple[Item, ...]]:
    """A conversation in the form that models take, and notes for the model.

    The caller adds the notes behind the outputs of the pending calls, which are about to run.
    ``outputs`` are those of calls that the client was asked about.
    Items that only some upstreams understand are kept; each provider drops what its own does not.
    """
    calls_and_outputs: list[Item] = []
    requested = with_requested_calls(items, own_labels, pending, outputs)
    for index, item in enumerate(requested):
        if item["type"] == "mcp_call" and item.get("server_label") in own_labels:
            call_id = item.get("id") or f"call_{index}"
            calls_and_outputs += _split_mcp_call(item, call_id)
        else:
            calls_and_outputs.append(item)
    pairing = _Pairing(calls_and_outputs, pending)
    for item in calls_and_outputs:
        pairing.add(item)
    pairing.end_run()
    return without_dangling_reasoning(pairing.items), tuple(pairing.notes)


def as_function_output(item: Item, call_id: str) -> Item:
    output = item.get("output") or ""
    if item.get("error"):
        output = _error_text(item["error"])
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def _split_mcp_call(item: Item, call_id: str) -> list[Item]:
    call = as_function_call(item, call_id)
    if item.get("status") == "incomplete" and not item.get("error"):
        call["status"] = "incomplete"
        return [call]
    return [call, as_function_output(item, call_id)]


def _error_text(error: Any) -> str:
    if not isinstance(error, dict):
        return str(error)
    content = error.get("content")
    if not isinstance(content, list):
        return str(error.get("message") or error)
    texts = [str(part.get("text", "")) for part in content if isinstance(part, dict)]
    return "".join(texts)


class _Pairing:
    """Puts the outputs of a run of calls right behind it, then notes on calls that were cut off.

    Upstreams refuse a call without an output, an output without a call, and items between them.
    """

    def __init__(self, items: Iterable[Item], pending: Collection[str]) -> None:
        self.items: list[Item] = []
        self.notes: list[Item] = []
        self._pending = pending
        self._answers = iter(_answers(items))  # of the calls, in their order
        self._run: list[tuple[Item, Item | None]] = []  # calls with their outputs
        self._is_answered = False  # at least one call of the run

    def add(self, item: Item) -> None:
        if item["type"] in OUTPUTS:
            if any(call["call_id"] == item["call_id"] for call, _ in self._run):
                self._is_answered = True
            return
        if self._is_behind_run(item):
            self.end_run()
        if item["type"] not in CALLS:
            self.items.append(item)
            return
        answer = next(self._answers)
        if item.get("status") != "incomplete":
            self.items.append(item)
            self._run.append((item, answer))
        else:
            self.notes.append(dropped_note(item))

    def _is_behind_run(self, item: Item) -> bool:
        if not self._run or not is_from_model(item):
            return True
        return self._is_answered and not self._is_pending()

    def _is_pending(self) -> bool:
        return any(call["call_id"] in self._pending for call, _ in self._run)

    def end_run(self) -> None:
        for call, answer in self._run:
            if call["call_id"] not in self._pending:
                self.items.append(answer or _interrupted_output(call))
        if not self._is_pending():
            self.items += self.notes
            self.notes = []
        self._run = []
        self._is_answered = False


def _answers(items: Iterable[Item]) -> list[Item | None]:
    """For each call its output. Some servers count their ids anew in every answer."""
    answers: list[Item | None] = []
    newest: dict[str, int] = {}  # call id -> the last call with it
    early: dict[str, Item] = {}  # outputs that a client put before their calls
    for item in items:
        if item["type"] in CALLS:
            newest[item["call_id"]] = len(answers)
            answers.append(early.pop(item["call_id"], None))
        elif item["type"] in OUTPUTS and item["call_id"] in newest:
            answers[newest[item["call_id"]]] = item
        elif item["type"] in OUTPUTS:
            early[item["call_id"]] = item
    return answers


def with_outputs(items: list[Item], outputs: list[Item]) -> list[Item]:
    """The items with outputs behind them, all outputs of the last calls in the order of the calls.

    Templates that have no call ids pair them by position.
    """
    end = len(items)
    while end and items[end - 1]["type"] in OUTPUTS:
        end -= 1
    answered = {output["call_id"]: output for output in items[end:] + outputs}
    ordered: list[Item] = []
    for item in reversed(items[:end]):
        if item["type"] in CALLS and item["call_id"] in answered:
            ordered.append(answered.pop(item["call_id"]))
    ordered.reverse()
    return items[:end] + ordered


def with_images(text: str, images: Collection[str]) -> Content:
    """A tool's output with its images, which only models get: clients and logs have the text."""
    if not images:
        return text
    parts: list[ContentPart] = [{"type": "input_text", "text": text}]
    for url in images:
        parts.append({"type": "input_image", "image_url": url})
    return parts


def without_dangling_reasoning(items: list[Item]) -> list[Item]:
    dangling = dangling_reasoning(items)
    return [item for index, item in enumerate(items) if index not in dangling]


def _interrupted_output(call: Item) -> Item:
    """For a call whose turn ended before its result was there."""
    return {"type": OUTPUT_OF[call["type"]], "call_id": call["call_id"], "output": INTERRUPTED}


def dropped_note(call: Item) -> Item:
    """Replaces a call in which the model was cut off, and which must not look like one it made."""
    size = len(call_arguments(call))
    return as_note(
        f"Your call of {call['name']} was cut off after {size} characters of its arguments "
        "and was not carried out. If it is still needed, do it in smaller steps."
    )


def as_note(text: str) -> Item:
    """The server's message to the model, as the user: many upstreams take one system message only."""
    return {"type": "message", "role": "user", "content": text, "is_note": True}


def is_note(item: Item) -> bool:
    return item.get("is_note", False) or item.get(MARK) == SUMMARY
