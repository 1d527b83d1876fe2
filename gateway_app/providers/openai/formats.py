"""The forms in which an upstream is asked for JSON: the best that it takes, found out by its refusals."""

import re
from collections import Counter
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any

import orjson

from gateway_app.agent.model_call import ModelCall
from gateway_app.config.presets.facts import FormatForm
from gateway_app.providers.openai.client import Upstream
from gateway_app.providers.openai.errors import Refused

CHAT = "chat_completions"
# Of an error that does not name the format: one may be a passing one.
UNCLEAR_ERRORS = 2
ANY_OBJECT = {"type": "object"}
_ENFORCING = (FormatForm.JSON_SCHEMA, FormatForm.OBJECT_WITH_SCHEMA, FormatForm.GUIDED_JSON)
_OF_RESPONSES = (FormatForm.JSON_SCHEMA, FormatForm.JSON_OBJECT, FormatForm.INSTRUCTIONS)
_WITH_SCHEMA = (
    "Your final answer must be one JSON document that follows this JSON schema, and nothing else: "
    "no introduction, no explanation, no code fence.\n\n"
)
_WITHOUT_SCHEMA = (
    "Your final answer must be one JSON object and nothing else: "
    "no introduction, no explanation, no code fence."
)


def _any_of(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


_ABOUT_FORMAT = _any_of(
    r"response.?format|json.?schema|json.?object|guided.?json|text\.format",
    r"structured.?(?:output|generation|response)|grammar",
)
# OpenAI's json_object needs a request that speaks of JSON: an error of the client.
_OF_CLIENT = _any_of(r"must contain the word")
# The form is known, but not all of JSON Schema.
_ABOUT_SCHEMA = _any_of(
    r"invalid (?:json )?schema|schema\b.{0,60}\b(?:invalid|not valid|unsupported|not supported)",
    r"(?:conver|compil|pars)\w{1,6}\b.{0,40}\b(?:schema|grammar)|schema conversion",
)
_OVERLOAD = _any_of(r"overload|capacity|busy|too many|unavailable|time.?out|memory|loading")


@dataclass(frozen=True)
class TextFormat:
    """The format that the client asks for."""

    kind: str  # json_schema or json_object
    schema: dict[str, Any]
    has_tools: bool  # some servers take a format, and refuse it beside tools

    @classmethod
    def of(cls, call: ModelCall) -> "TextFormat":
        given = call.parameters["text"]["format"]
        return cls(given["type"], given.get("schema", ANY_OBJECT), bool(call.tool_specs()))

    @property
    def key(self) -> tuple[str, bool]:
        """What an upstream takes may depend on it."""
        return self.kind, self.has_tools

    def instructions(self) -> str:
        if self.kind == "json_object":
            return _WITHOUT_SCHEMA
        return _WITH_SCHEMA + orjson.dumps(self.schema).decode()


class Verdict(Enum):
    UNRELATED = auto()  # to the format
    FORM = auto()  # the upstream does not take this form
    SCHEMA = auto()  # it can't follow this schema in this form
    UNCLEAR = auto()  # it failed, and gives no reason


def judge(refused: Refused) -> Verdict:
    if refused.status not in (400, 404, 422, 500, 501) or _OF_CLIENT.search(refused.judged):
        return Verdict.UNRELATED
    if _ABOUT_FORMAT.search(refused.judged):
        if _ABOUT_SCHEMA.search(refused.judged):
            return Verdict.SCHEMA
        return Verdict.FORM
    if refused.status == 500 and not _OVERLOAD.search(refused.judged):
        return Verdict.UNCLEAR
    return Verdict.UNRELATED


class KnownForms:
    """Which forms one upstream takes: what its preset has, and what this process has seen."""

    def __init__(self, upstream: Upstream) -> None:
        self._known = upstream.preset.format_forms
        self._is_chat = upstream.api_mode == CHAT
        self._refused: set[tuple[tuple[str, bool], FormatForm]] = set()
        self._taken: set[tuple[tuple[str, bool], FormatForm]] = set()
        self._unclear: Counter[tuple[tuple[str, bool], FormatForm]] = Counter()
        self._ignored: set[tuple[tuple[str, bool], FormatForm]] = set()
        self._proven: set[tuple[tuple[str, bool], FormatForm]] = set()

    def all(self, wanted: TextFormat) -> tuple[FormatForm, ...]:
        """Every form it may take, the best one first."""
        forms = list(self._known)
        if wanted.kind == "json_object":
            others = (FormatForm.JSON_SCHEMA, FormatForm.INSTRUCTIONS)
            forms = [FormatForm.JSON_OBJECT]
            forms += [form for form in others if form in self._known]
        if not self._is_chat:
            forms = [form for form in forms if form in _OF_RESPONSES]
        return tuple(forms) or (FormatForm.JSON_SCHEMA,)

    def candidates(self, wanted: TextFormat) -> list[FormatForm]:
        """Without those it refused; all again once it has refused all."""
        forms = self.all(wanted)
        left = [form for form in forms if (wanted.key, form) not in self._refused]
        return left or list(forms)

    def is_enforced(self, wanted: TextFormat, form: FormatForm) -> bool:
        """Does the upstream hold the model to it, as far as is known?

        A server that has refused its best form may take another one and ignore the schema in it.
        """
        if (wanted.key, form) in self._ignored:
            return False
        if form is FormatForm.JSON_OBJECT:
            return wanted.kind == "json_object" and self._known[0] in _ENFORCING
        return form in _ENFORCING and form is self._known[0]

    def is_proven(self, wanted: TextFormat, form: FormatForm) -> bool:
        return (wanted.key, form) in self._proven

    def note_proven(self, wanted: TextFormat, form: FormatForm) -> None:
        """A document of this upstream was what the schema allows."""
        self._proven.add((wanted.key, form))

    def note_ignored(self, wanted: TextFormat, form: FormatForm) -> None:
        """The upstream took the form without an error, and did not hold the model to it."""
        self._ignored.add((wanted.key, form))
        self._refused.add((wanted.key, form))

    def note_taken(self, wanted: TextFormat, form: FormatForm, failed: list[FormatForm]) -> None:
        """An answer has come; ``failed`` are the forms that unclear errors ruled out before it."""
        self._taken.add((wanted.key, form))
        self._unclear[wanted.key, form] = 0
        for other in failed:
            self._refused.add((wanted.key, other))

    def is_next_worth_trying(self, wanted: TextFormat, form: FormatForm, verdict: Verdict) -> bool:
        entry = (wanted.key, form)
        if verdict is Verdict.FORM:
            self._refused.add(entry)
        if verdict is not Verdict.UNCLEAR:
            return verdict is not Verdict.UNRELATED
        if entry in self._taken:
            return False
        self._unclear[entry] += 1
        if self._unclear[entry] < UNCLEAR_ERRORS:
            return False
        self._unclear[entry] = 0
        return True


def in_form(body: dict[str, Any], wanted: TextFormat, form: FormatForm) -> dict[str, Any]:
    """The body of a request, of either protocol, with the format in this form."""
    if form == wanted.kind:
        return body
    if "messages" in body:
        return _chat_in_form(body, wanted, form)
    text: dict[str, Any] = {}
    for name, value in body["text"].items():
        if name != "format":
            text[name] = value
    if form is FormatForm.JSON_OBJECT:
        text["format"] = {"type": "json_object"}
    elif form is FormatForm.JSON_SCHEMA:
        text["format"] = {"type": "json_schema", "name": "answer", "schema": wanted.schema}
    return body | {"text": text}


def _chat_in_form(body: dict[str, Any], wanted: TextFormat, form: FormatForm) -> dict[str, Any]:
    changed = {name: value for name, value in body.items() if name != "response_format"}
    if form is FormatForm.JSON_SCHEMA:
        schema = {"name": "answer", "schema": wanted.schema}
        changed["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif form is FormatForm.OBJECT_WITH_SCHEMA:
        changed["response_format"] = {"type": "json_object", "schema": wanted.schema}
    elif form is FormatForm.GUIDED_JSON:
        changed["guided_json"] = wanted.schema
    elif form is FormatForm.JSON_OBJECT:
        changed["response_format"] = {"type": "json_object"}
    return changed


def with_instructions(call: ModelCall, wanted: TextFormat) -> ModelCall:
    parts = [wanted.instructions()]
    if call.instructions:
        parts.insert(0, call.instructions)
    return replace(call, instructions="\n\n".join(parts))
