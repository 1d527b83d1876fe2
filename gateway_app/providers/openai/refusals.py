"""Fields that an upstream refuses by name: they are left out of that request and of later ones."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from gateway_app.agent.events import ProtocolDeviation
from gateway_app.providers.openai.errors import Refused
from responses_app.protocol.failures import TOO_LONG

Body = dict[str, Any]

# Without these it would be another request. The forms of `response_format` have their own order.
NEEDED = frozenset(
    (
        "add_generation_prompt",
        "background",
        "continue_final_message",
        "input",
        "instructions",
        "max_output_tokens",
        "messages",
        "model",
        "response_format",
        "store",
        "stream",
        "text",
        "tool_choice",
        "tools",
    )
)
# The limit has two names, and each server refuses one of them; without it an answer may be long.
OTHER_NAMES = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
# Sent for the server's own sake: any complaint that names one is enough.
OWN_FIELDS = frozenset(("stream_options",))
# Ollama names the ability, not the field.
_SYNONYMS = {"reasoning_effort": ("thinking",)}
_REFUSES = re.compile(
    r"un(?:known|supported|recogni[sz]ed|expected)"
    r"|not (?:\w{1,20} )?(?:support|permit|allow|recogni|available|implement)"
    r"|n't support|extra (?:input|field)|cannot find field",
    re.IGNORECASE,
)
_LABELS = "parameter|argument|field|property|option|supplied|name|body"


class Refusals:
    """What one upstream has refused up to now."""

    def __init__(self) -> None:
        self._refused: dict[str, None] = {}  # in the order of the refusals

    def applied(self, body: Body) -> tuple[Body, list[ProtocolDeviation]]:
        """The body without what was refused before; a deviation for each field that it had."""
        deviations = []
        for name in self._refused:
            if name in body:
                body, deviation = _without(body, name)
                deviations.append(deviation)
        return body, deviations

    def learn(self, body: Body, refused: Refused) -> tuple[Body, list[ProtocolDeviation]]:
        """The same for a refusal of this body; no deviation if it refuses nothing optional."""
        for name in refused_fields(refused, body.keys() - NEEDED):
            other = OTHER_NAMES.get(name)
            if other not in self._refused:  # neither name will do: the refusal stands
                self._refused[name] = None
        return self.applied(body)


def refused_fields(refused: Refused, names: Iterable[str]) -> list[str]:
    """Those of the names that an upstream does not know or support, in a fixed order."""
    if refused.code == TOO_LONG:
        return []
    text = refused.refused_text
    refuses = _REFUSES.search(text) is not None
    found = []
    for name in sorted(names):
        is_enough = refuses or name in OWN_FIELDS
        if is_enough and (refused.param == name or _is_named(name, text)):
            found.append(name)
    return found


def _without(body: Body, name: str) -> tuple[Body, ProtocolDeviation]:
    less = {field: value for field, value in body.items() if field != name}
    other = OTHER_NAMES.get(name)
    if other is None:
        return less, ProtocolDeviation(f"no {name}")
    return less | {other: body[name]}, ProtocolDeviation(f"{other} instead of {name}")


def _is_named(name: str, text: str) -> bool:
    return any(re.search(pattern, text) for pattern in _patterns(name))


def _patterns(name: str) -> Iterator[str]:
    """A plain word such as `user` counts only in quotes or behind a word such as `parameter`."""
    for spelling in (name, _camel_case(name)):
        escaped = re.escape(spelling)
        yield rf"['\"`]{escaped}['\"`]"
        yield rf"(?i:\b(?:{_LABELS})s?)\W{{1,3}}{escaped}\b"
        if spelling != spelling.lower() or "_" in spelling:
            yield rf"(?<![\w.]){escaped}\b"
    for word in _SYNONYMS.get(name, ()):
        yield rf"\b{word}\b"


def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)
