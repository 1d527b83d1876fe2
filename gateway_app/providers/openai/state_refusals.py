"""State that an upstream refuses: it is left out of that request, and of later ones where it recurs."""

import re
from typing import Any

from gateway_app.agent.events import ProtocolDeviation
from gateway_app.agent.model_call import ENCRYPTED_REASONING
from gateway_app.config.presets.facts import Preset, ReasoningReturn
from gateway_app.providers.openai.errors import Refused
from responses_app.protocol.failures import TOO_LONG

Body = dict[str, Any]

# Deviations: what a server does not do, or take back.
UNREADABLE = "encrypted reasoning not taken back"
NOT_ENCRYPTED = "no encrypted reasoning"
NO_REASONING = "reasoning not taken back"

_ENCRYPTED = re.compile(r"encrypted.content", re.IGNORECASE)
_REASONING = re.compile(r"\breasoning(?:_content)?\b", re.IGNORECASE)  # the field of a message
# In the order in which they are tried.
_REFUSAL_TEXTS = (
    (UNREADABLE, _ENCRYPTED),
    (NOT_ENCRYPTED, _ENCRYPTED),
    (NO_REASONING, _REASONING),
)


class StateRefusals:
    """What one upstream has refused up to now; compare ``Refusals``, which leaves out fields."""

    def __init__(self, preset: Preset) -> None:
        self._preset = preset
        self._refused: dict[str, None] = {}  # in the order of the refusals

    def applied(self, body: Body) -> tuple[Body, list[ProtocolDeviation]]:
        """The body without what was refused before; a deviation for each state that it had."""
        deviations = []
        for name in self._refused:
            less = self._without(name, body)
            if less != body:
                body = less
                deviations.append(ProtocolDeviation(name))
        return body, deviations

    def learn(
        self, body: Body, refused: Refused, text: str
    ) -> tuple[Body, list[ProtocolDeviation]]:
        """The same for a refusal of this body with this text; no deviation if it refuses no state."""
        if refused.code == TOO_LONG:
            return body, []
        for name, pattern in _REFUSAL_TEXTS:
            if not pattern.search(text) or _is_about_option(refused, body):
                continue
            less = self._without(name, body)
            if less != body:
                if name != UNREADABLE:  # what it encrypts from now on it can read
                    self._refused[name] = None
                return less, [ProtocolDeviation(name)]
        return body, []

    def _without(self, name: str, body: Body) -> Body:
        if name == UNREADABLE:
            return _without_encrypted_input(body)
        if name == NOT_ENCRYPTED:
            return _without_encrypted_include(body)
        if self._preset.reasoning_return is ReasoningReturn.REQUIRED:
            return body
        return _without_reasoning(body, self._preset.reasoning_field)


def _is_about_option(refused: Refused, body: Body) -> bool:
    """OpenRouter's option ``reasoning`` has the name of the field of a message."""
    return refused.param == "reasoning" and "reasoning" in body


def _without_encrypted_input(body: Body) -> Body:
    """For a server that can't read it any more, as after a change of the account."""
    if "input" not in body:
        return body
    items = [item for item in body["input"] if item.get("type") != "reasoning"]
    return body | {"input": items}


def _without_encrypted_include(body: Body) -> Body:
    """For a model that encrypts nothing."""
    included = [name for name in body.get("include", ()) if name != ENCRYPTED_REASONING]
    less = {name: value for name, value in body.items() if name != "include"}
    if included:
        less["include"] = included
    return less


def _without_reasoning(body: Body, field: str) -> Body:
    """For a server that refuses the field of a message."""
    if "messages" not in body:
        return body
    messages = []
    for message in body["messages"]:
        kept = {name: value for name, value in message.items() if name != field}
        messages.append(kept)
    return body | {"messages": messages}
