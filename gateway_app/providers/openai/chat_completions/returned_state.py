"""The state of items in the messages that go back: reasoning, and what only the server can read."""

import re
from typing import TYPE_CHECKING, Any

from gateway_app.config.presets.facts import Preset, ReasoningReturn
from gateway_app.providers.openai.state import identity_of, opaque, usable_state
from responses_app.protocol.items import CALLS, Item
from responses_app.protocol.reasoning_items import reasoning_text

if TYPE_CHECKING:  # its SDK takes most of a second to import, and other providers do not need it
    from gateway_app.providers.openai.client import Upstream

Message = dict[str, Any]
DETAILS = "reasoning_details"
EXTRAS = "extra_content"
ENCRYPTED = "reasoning.encrypted"
_TEXT_FIELDS = ("text", "summary")  # fields of a detail that arrive in pieces


class ReturnedState:
    """Adds the state of each item to the message that it became."""

    def __init__(self, upstream: "Upstream") -> None:
        self._preset = upstream.preset
        self._model = upstream.model
        self._identity = identity_of(upstream)
        self._reasoning = ""  # of the items before the next message

    def add(self, item: Item, messages: list[Message]) -> None:
        """After the item was added to the messages."""
        kind = item.get("type", "message")
        state = usable_state(item, self._identity)
        if kind == "reasoning":
            if state is not None:
                self._reasoning += reasoning_text(item)
            return
        if kind not in CALLS and item.get("role") != "assistant":
            return
        message = messages[-1]
        if self._reasoning:
            field = self._preset.reasoning_field
            message[field] = message.get(field, "") + self._reasoning
            self._reasoning = ""
        if not state:
            return
        if DETAILS in state:
            message[DETAILS] = message.get(DETAILS, []) + state[DETAILS]
        if EXTRAS in state and kind in CALLS:
            message["tool_calls"][-1][EXTRAS] = state[EXTRAS]

    def finish(self, messages: list[Message]) -> None:
        """Remove the reasoning that the server does not want, and add what it can't do without."""
        turns = _turns(messages)
        for turn in turns:
            _keep_wanted_reasoning(turn, self._preset, is_current=turn is turns[-1])
        pattern = self._preset.placeholder_models
        if pattern and re.match(pattern, self._model):
            _add_placeholders(messages, self._preset)


def _turns(messages: list[Message]) -> list[list[Message]]:
    """The messages, divided before each one of the user."""
    turns: list[list[Message]] = [[]]
    for message in messages:
        if message["role"] == "user":
            turns.append([])
        turns[-1].append(message)
    return turns


def _keep_wanted_reasoning(turn: list[Message], preset: Preset, *, is_current: bool) -> None:
    """Optional reasoning is for the tool loop that is under way: templates drop older reasoning.

    Where it is required, every message with calls has the field, even if it is empty; turns
    without calls need none.
    """
    field = preset.reasoning_field
    has_calls = any("tool_calls" in message for message in turn)
    is_required = preset.reasoning_return is ReasoningReturn.REQUIRED
    is_wanted = is_current
    if is_required:
        is_wanted = has_calls
    elif preset.reasoning_return is ReasoningReturn.NEVER:
        is_wanted = False
    for message in turn:
        if not is_wanted or DETAILS in message:  # the details have the same text
            message.pop(field, None)
        if is_required and "tool_calls" in message:
            message.setdefault(field, "")


def _add_placeholders(messages: list[Message], preset: Preset) -> None:
    """For calls of another origin: the first call of a message must have extras."""
    for message in messages:
        calls = message.get("tool_calls") or []
        if calls and not any(EXTRAS in call for call in calls):
            calls[0][EXTRAS] = preset.placeholder_extras


class ReasoningDetails:
    """The reasoning details of a message, from the fragments of its stream.

    The text of a detail arrives in pieces and its signature behind them, all with one index: the
    signature is valid for the whole text only. Encrypted details arrive whole.
    """

    def __init__(self) -> None:
        self.merged: list[Any] = []
        self._by_index: dict[tuple[Any, Any], dict[str, Any]] = {}

    def add(self, fragments: list[Any]) -> None:
        for fragment in opaque(fragments):
            if not isinstance(fragment, dict) or fragment.get("type") == ENCRYPTED:
                self.merged.append(fragment)
                continue
            key = (fragment.get("type"), fragment.get("index"))
            if key in self._by_index and key[1] is not None:
                _extend(self._by_index[key], fragment)
            else:
                self._by_index[key] = dict(fragment)
                self.merged.append(self._by_index[key])


def _extend(detail: dict[str, Any], fragment: dict[str, Any]) -> None:
    for name, value in fragment.items():
        if value is None:
            continue
        if name in _TEXT_FIELDS and isinstance(detail.get(name), str):
            value = detail[name] + value
        detail[name] = value
