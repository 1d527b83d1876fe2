"""Fields that an upstream refuses by name: they are left out of that request.

Later requests are without them too if the upstream does not know the field at all. Its refusal
of one client's request must not change those of other clients.
"""

import re
from collections.abc import Iterator
from typing import Any

from gateway_app.agent.events import ProtocolDeviation
from gateway_app.agent.model_call import ModelCall
from gateway_app.providers.openai.client import Upstream
from gateway_app.providers.openai.errors import Refused
from gateway_app.providers.openai.extra_fields import CHAT_ONLY_FIELDS
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
# Sent for the server's own sake: any refusal that names one is enough.
OWN_FIELDS = frozenset(("stream_options",))
# Ollama names the ability, not the field.
_SYNONYMS = {"reasoning_effort": ("thinking",)}
_REFUSES = re.compile(
    r"un(?:known|supported|recogni[sz]ed|expected)"
    r"|not (?:\w{1,20} )?(?:support|permit|allow|recogni|available|implement)"
    r"|n't support|extra (?:input|field)|cannot find field",
    re.IGNORECASE,
)
# The field is known, and its value is the fault.
_ABOUT_VALUE = re.compile(
    r"(?:\b|_)values?\b|\b(?:must|should) be\b|\bone of\b|\bonly the default\b", re.IGNORECASE
)
# The field is refused beside something else that this request has.
_CONDITIONAL = re.compile(
    r"\b(?:with|for|when|while|if|unless)\b(?! (?:this|the|that) model)|\btogether\b|\bcombin",
    re.IGNORECASE,
)
_LABELS = "parameter|argument|field|property|option|supplied|name|body"


class Refusals:
    """What one upstream has refused up to now."""

    def __init__(self, upstream: Upstream) -> None:
        self.remembered: dict[str, None] = {}  # in the order of the refusals
        # What the operator wants sent is never left out.
        self.kept = NEEDED | (upstream.options.get("extra_body") or {}).keys()

    def of(self, call: ModelCall) -> "CallRefusals":
        return CallRefusals(self, call)


class CallRefusals:
    """What the upstream refuses of one call."""

    def __init__(self, refusals: Refusals, call: ModelCall) -> None:
        self._remembered = refusals.remembered
        self._kept = refusals.kept
        self._left_out: dict[str, None] = {}
        self._unknown = (call.extras.keys() | call.chat_extras.keys()) - set(CHAT_ONLY_FIELDS)
        self._not_clients = set(OWN_FIELDS)
        if call.parameters.get("temperature") is None:
            self._not_clients.add("temperature")
        if call.max_output_tokens is None:
            self._not_clients.update(OTHER_NAMES)
        self._suspect = ""  # remembered once the upstream takes the request without it
        self._last_text = ""

    def applied(self, body: Body) -> tuple[Body, list[ProtocolDeviation]]:
        """The body without what was refused before; a deviation for each field that it had."""
        deviations = []
        for name in self._remembered | self._left_out:
            if name in body and name not in self._kept:
                body, deviation = _without(body, name)
                deviations.append(deviation)
        return body, deviations

    def learn(self, body: Body, refused: Refused) -> tuple[Body, list[ProtocolDeviation]]:
        """The same for a refusal of this body; no deviation if it refuses nothing optional."""
        if refused.judged != self._last_text:
            self.confirm()
        self._suspect = ""
        self._last_text = refused.judged
        names = self._named_fields(body, refused)
        if not names:
            return body, []
        name = names[0]
        text = self.without_clients_names(refused.refused_text)
        is_about_value = _is_about_value(name, text)
        if is_about_value and name not in self._not_clients:
            return body, []  # the client's own value: the error is for the client
        if OTHER_NAMES.get(name) in self._remembered | self._left_out:
            return body, []  # neither name will do
        self._left_out[name] = None
        is_general = not is_about_value and not _CONDITIONAL.search(text)
        if is_general and len(names) == 1 and name not in self._unknown:
            self._suspect = name
        return self.applied(body)

    def confirm(self) -> None:
        """The upstream does not refuse the field any more: so the field was the reason."""
        if self._suspect:
            self._remembered[self._suspect] = None

    def without_clients_names(self, text: str) -> str:
        """A client may name a field as it likes, also with words that a refusal has."""
        for name in sorted(self._unknown, key=len, reverse=True):
            text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", "", text)
        return text

    def _named_fields(self, body: Body, refused: Refused) -> list[str]:
        """Those that the upstream does not know or support; it may name another one beside it."""
        if refused.code == TOO_LONG:
            return []
        text = self.without_clients_names(refused.refused_text)
        refuses = _REFUSES.search(text) is not None
        candidates = sorted(body.keys() - self._kept)
        if not refuses:
            candidates = [name for name in candidates if name in OWN_FIELDS]
        for param in (refused.param, re.split(r"[.\[]", refused.param)[0]):
            if param in body:
                return [name for name in candidates if name == param]
        for name in candidates:
            if name in self._unknown and _is_named(name, refused.refused_text):
                return [name]
        known = [name for name in candidates if name not in self._unknown]
        return [name for name in known if _is_named(name, text)]


def _is_about_value(name: str, text: str) -> bool:
    is_subject = re.search(rf"{re.escape(name)}\W{{1,3}}does(?:n't| not) support\b", text)
    return is_subject is not None or _ABOUT_VALUE.search(text) is not None


def _without(body: Body, name: str) -> tuple[Body, ProtocolDeviation]:
    less = {field: value for field, value in body.items() if field != name}
    other = OTHER_NAMES.get(name)
    if other is None:
        return less, ProtocolDeviation(f"no {name}")
    return {other: body[name]} | less, ProtocolDeviation(f"{other} instead of {name}")


def _is_named(name: str, text: str) -> bool:
    return any(re.search(pattern, text) for pattern in _patterns(name))


def _patterns(name: str) -> Iterator[str]:
    """A plain word such as `user` counts only in quotes or behind a word such as `parameter`."""
    for spelling in (name, _camel_case(name)):
        escaped = re.escape(spelling)
        yield rf"['\"`]{escaped}['\"`]"
        yield rf"(?i:\b(?:{_LABELS})s?)\W{{1,3}}{escaped}(?!\w)"
        if spelling != spelling.lower() or "_" in spelling:
            yield rf"(?<![\w.]){escaped}\b"
    for word in _SYNONYMS.get(name, ()):
        yield rf"\b{word}\b"


def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)
