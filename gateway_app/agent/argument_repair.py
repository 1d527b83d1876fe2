"""Repairs the JSON of a tool call where the model's meaning is certain.

A repair may add or remove commas, add closing brackets at the end, change quotes, escape characters
in strings and spell literals as JSON does. Everything else that the model wrote is in the result,
in the same order, and nothing else is: the repaired object is compared with what was written.

The repair library gets placeholders instead of the strings, and no space that is not needed: it
guesses where a string ends from the words in it, takes a minute for 100 kB with quotes, and reads
some objects wrongly that have a space before a bracket.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

MAX_TOKENS = 10_000  # the library takes about 20 ms for so many, on the event loop
MAX_DEPTH = 30  # the library calls itself several times for each level
OPENING, CLOSING = "{[", "}]"
LITERALS = {"true": True, "True": True, "false": False, "False": False, "null": None, "None": None}

_FENCED = re.compile(r"\s*```[A-Za-z]*\s*\n(.*)\n\s*```\s*", re.DOTALL)
_TOKEN = re.compile(
    r"""\s*+(?:
        (?P<mark>[{}\[\]:,])
        | "(?P<double>[^"\\]*+(?:\\.[^"\\]*+)*+)"
        | '(?P<single>[^'\\]*+(?:\\.[^'\\]*+)*+)'
        | (?P<word>[\w.+-]++)
    )""",
    re.DOTALL | re.VERBOSE,
)
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
_NAME = re.compile(r"[A-Za-z_]\w*")
# A quote or a control character as it is, or a backslash with the character behind it.
_UNFIT = re.compile(r'\\.|["\x00-\x1f]', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_CONTROL_ESCAPES = frozenset("bfnrtu")
_ESCAPES = _CONTROL_ESCAPES | frozenset('"\\/')


class NotRepairable(ValueError):
    """The message is for the model."""


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str  # of a mark: the mark itself; otherwise "string" or "word"
    text: str  # of a string: its value


def repaired(written: str) -> dict[str, Any]:
    """The object that was meant; raises NotRepairable."""
    import json_repair  # few models need it, and it takes memory

    fenced = _FENCED.fullmatch(written)
    if fenced is not None:
        written = fenced.group(1)
    tokens = list(_tokens(written))
    found = json_repair.loads(_skeleton(tokens))
    if not isinstance(found, dict):
        raise NotRepairable("they are not one JSON object")
    return _Comparison(tokens).whole(found)


def _tokens(written: str) -> Iterator[_Token]:
    position = 0
    depth = 0
    end = len(written.rstrip())
    for _ in range(MAX_TOKENS):
        if position >= end:
            return
        match = _TOKEN.match(written, position)
        if match is None:
            raise NotRepairable(_unreadable(written, position))
        position = match.end()
        token = _token(match)
        depth += (token.kind in OPENING) - (token.kind in CLOSING)
        if depth > MAX_DEPTH:
            raise NotRepairable("they are nested too deeply")
        yield token
    raise NotRepairable("they have too many parts")


def _unreadable(written: str, position: int) -> str:
    rest = written[position:].lstrip()
    if rest[0] in "\"'":
        return f"a string that begins with {rest[:20]} does not end"
    return f"{rest[:20]} is not part of a JSON object"


def _token(match: re.Match[str]) -> _Token:
    kind = match.lastgroup or ""
    text = match.group(kind)
    if kind == "mark":
        return _Token(text, text)
    if kind == "word":
        return _Token(kind, text)
    if not _has_clear_escapes(text, kind):
        raise NotRepairable(f"a backslash in the string {text[:20]} is not escaped")
    try:
        return _Token("string", orjson.loads(f'"{_UNFIT.sub(_escaped, text)}"'))
    except orjson.JSONDecodeError:
        raise NotRepairable(f"the string {text[:20]} has a wrong escape") from None


def _has_clear_escapes(text: str, kind: str) -> bool:
    r"""A regular expression may be written with single backslashes.

    Beside such a backslash, ``\n`` may be a new line or part of a path; and in single quotes, it may
    be one of Python's escapes.
    """
    escapes = set(_ESCAPED.findall(text)) - {"'"}
    if escapes <= _ESCAPES:
        return True
    return kind == "double" and not escapes & _CONTROL_ESCAPES


def _escaped(match: re.Match[str]) -> str:
    unfit = match.group()
    if len(unfit) == 1:
        return orjson.dumps(unfit).decode()[1:-1]
    if unfit[1] in _ESCAPES:
        return unfit
    if unfit[1] == "'":
        return "'"
    # A backslash that was meant as one, as in a regular expression.
    return orjson.dumps(unfit).decode()[1:-1]


def _skeleton(tokens: list[_Token]) -> str:
    parts: list[str] = []
    is_behind_mark = True
    for index, token in enumerate(tokens):
        is_mark = token.kind not in ("string", "word")
        if not is_mark and not is_behind_mark:
            parts.append(" ")
        parts.append(token.text if token.kind != "string" else f'"{index}"')
        is_behind_mark = is_mark
    return "".join(parts)


class _Comparison:
    """Builds the result from what was written, as long as the repaired object agrees with it."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = [(index, token) for index, token in enumerate(tokens) if token.kind != ","]
        self._next = 0

    def whole(self, found: dict[str, Any]) -> dict[str, Any]:
        result = self._object(found)
        for _, token in self._tokens[self._next :]:
            if token.kind not in CLOSING:
                raise NotRepairable(f"{token.text[:20]} follows the JSON object")
        return result

    def _value(self, found: Any) -> Any:
        if isinstance(found, dict):
            return self._object(found)
        if isinstance(found, list):
            return self._array(found)
        index, token = self._take()
        if token.kind == "string" and found == str(index):
            return token.text
        if token.kind == "word" and token.text in LITERALS and found is LITERALS[token.text]:
            return found
        if token.kind == "word" and _NUMBER.fullmatch(token.text):
            return json.loads(token.text)  # of any size, which orjson can't
        raise NotRepairable(f"{token.text[:20]} is not a JSON value")

    def _object(self, found: dict[str, Any]) -> dict[str, Any]:
        self._expect("{")
        result: dict[str, Any] = {}
        for found_key, inner in found.items():
            key = self._key(found_key)
            if key in result:
                raise NotRepairable(f"the key {key[:20]} is there twice")
            self._expect(":")
            result[key] = self._value(inner)
        self._expect_end("}")
        return result

    def _array(self, found: list[Any]) -> list[Any]:
        self._expect("[")
        result = [self._value(inner) for inner in found]
        self._expect_end("]")
        return result

    def _key(self, found: str) -> str:
        index, token = self._take()
        if token.kind == "string" and found == str(index):
            return token.text
        if token.kind == "word" and found == token.text and _NAME.fullmatch(found):
            return found
        raise NotRepairable(f"{token.text[:20]} is not a key")

    def _take(self) -> tuple[int, _Token]:
        if self._next == len(self._tokens):
            raise NotRepairable("they end too early")
        self._next += 1
        return self._tokens[self._next - 1]

    def _expect(self, mark: str) -> None:
        _, token = self._take()
        if token.kind != mark:
            raise NotRepairable(f"{mark} is missing before {token.text[:20]}")

    def _expect_end(self, mark: str) -> None:
        """At the end of the text, closing brackets may be missing."""
        if self._next < len(self._tokens):
            self._expect(mark)
