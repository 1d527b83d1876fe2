"""The arguments of a call: what is repaired, what is not, and which types are obvious."""

import json
from typing import Any

import pytest

from gateway_app.agent.arguments import read_arguments, sent_arguments

REPAIRED: dict[str, tuple[str, dict[str, Any]]] = {
    "a trailing comma": ('{"a": [1, 2,], "b": {},}', {"a": [1, 2], "b": {}}),
    "a missing comma": ('{"a": 1 "b": 2}', {"a": 1, "b": 2}),
    "single quotes": ("{'a': 'say \"hi\"', 'b': \"it's\"}", {"a": 'say "hi"', "b": "it's"}),
    "Python's literals": ("{'a': True, 'b': None, 'c': [False]}", {"a": True, "b": None, "c": [False]}),
    "a raw new line": ('{"a": "one\ntwo\tthree"}', {"a": "one\ntwo\tthree"}),
    "an open brace": ('{"a": {"b": [1', {"a": {"b": [1]}}),
    "one brace too many": ('{"a": 1}}', {"a": 1}),
    "a fence": ('```json\n{"a": 1}\n```', {"a": 1}),
    "a fence and a comma": ('```\n{"a": 1,}\n```\n', {"a": 1}),
    "a string with an object": ('"{\\"a\\": 1}"', {"a": 1}),
    "a string with a broken object": ("\"{'a': 1,}\"", {"a": 1}),
    "bare keys": ("{a: 1, b_2: 'x'}", {"a": 1, "b_2": "x"}),
    "an escaped apostrophe": ('{"a": "it\\\'s"}', {"a": "it's"}),
    "a regular expression": ('{"a": "\\d+\\.\\w"}', {"a": "\\d+\\.\\w"}),
    "escapes beside a comma": ('{"a": "\\u00e9\\ud83d\\ude00\\/\\\\n",}', {"a": "é😀/\\n"}),
    "a long number": ('{"a": 123456789012345678901234,}', {"a": 123456789012345678901234}),
    "nothing": ("", {}),
    "only spaces": (" \n", {}),
}
NEUTRAL = {
    "two objects": '{"a": 1}{"a": 2}',
    "two objects with a comma": '{"a": 1}, {"b": 2}',
    "an open string": '{"a": "x',
    "a key without a value": '{"a": 1, "b":',
    "a cut literal": '{"a": tru',
    "quotes inside a string": '{"a": "he "said" it"}',
    "an apostrophe in single quotes": "{'a': 'it's'}",
    "a key twice": '{"a": 1, "a": 2,}',
    "a missing colon": '{"a" 1}',
    "a set": '{"a", "b"}',
    "text behind it": '{"a": 1} is what I need',
    "a comment": '{"a": 1} // done',
    "crossed brackets": '{"a": [1, 2}',
    "a path with single backslashes": '{"a": "C:\\docs\\new"}',
    "Python's escapes": "{'a': '\\x41'}",
    "half a character": '{"a": "\\ud800"}',
    "no number": '{"a": NaN}',
    "an endless number": '{"a": ' + "1" * 5000 + ",}",
    "many brackets": "{" * 500,
    "words": "the weather in Paris",
    "an array": "[1, 2]",
    "a number": "42",
    "a string": '"Paris"',
    "null": "null",
}


@pytest.mark.parametrize("name", REPAIRED)
def test_what_is_certain_is_repaired(name: str) -> None:
    written, meant = REPAIRED[name]
    assert read_arguments(written, {}) == meant
    sent = sent_arguments(written)
    assert json.loads(sent) == meant
    assert sent_arguments(sent) == sent


@pytest.mark.parametrize("name", NEUTRAL)
def test_what_is_not_is_replaced_by_an_empty_object_and_explained(name: str) -> None:
    written = NEUTRAL[name]
    assert sent_arguments(written) == "{}"
    with pytest.raises(ValueError, match=r"must be one JSON object: .* Call it again with valid JSON"):
        read_arguments(written, {})


def test_valid_arguments_are_sent_as_they_are() -> None:
    written = '{ "b": 1,  "a": "\\u00e9" }'
    assert sent_arguments(written) is written


def test_a_long_text_with_quotes_is_repaired_at_once() -> None:
    """The repair library alone takes a minute for it."""
    content = 'print("x")\n' * 20_000
    written = json.dumps({"content": content})[:-1] + ",}"
    assert read_arguments(written, {}) == {"content": content}


SCHEMA = {
    "type": "object",
    "properties": {
        "count": {"type": "integer"},
        "ratio": {"type": "number"},
        "deep": {"type": "boolean"},
        "name": {"type": "string"},
        "paths": {"type": "array", "items": {"type": "string"}},
        "ids": {"type": "array", "items": {"type": "integer"}},
        "where": {"type": "object", "properties": {"line": {"type": "integer"}}, "required": ["line"]},
        "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "either": {"type": ["string", "integer"]},
        "any": {},
    },
    "required": ["count"],
}
FITTED: dict[str, tuple[Any, Any]] = {
    "count": ("10", 10),
    "ratio": ("-1.5e3", -1500.0),
    "deep": ("true", True),
    "name": (10, "10"),
    "paths": ("a.txt", ["a.txt"]),
    "ids": ('["1", 2]', [1, 2]),
    "where": ('{"line": "3"}', {"line": 3}),
    "limit": ("5", 5),
}
KEPT: dict[str, tuple[str, Any]] = {
    "null": ("ratio", None),
    "a number in a text": ("name", "10"),
    "one of two types": ("either", 10),
    "any type": ("any", "10"),
    "an unknown field": ("other", "10"),
    "null in a union": ("limit", None),
    "a union that nothing fits": ("limit", "many"),
}
MISFITS: dict[str, tuple[dict[str, Any], str]] = {
    "text for a number": ({"count": "many"}, "'count' must be a whole number"),
    "a fraction": ({"count": "1.5"}, "'count' must be a whole number"),
    "a boolean for a number": ({"count": True}, "'count' must be a whole number"),
    "a number for a boolean": ({"count": 1, "deep": 1}, "'deep' must be true or false"),
    "an object for a text": ({"count": 1, "name": {"a": 1}}, "'name' must be a string"),
    "a broken array": ({"count": 1, "paths": "[1, 2"}, "'paths' must be an array"),
    "an inner field": ({"count": 1, "where": {"line": "x"}}, "'where.line' must be a whole number"),
    "an entry": ({"count": 1, "ids": [1, "x"]}, r"'ids\[1\]' must be a whole number"),
    "a missing field": ({"name": "x"}, "'count' is missing"),
    "a missing inner field": ({"count": 1, "where": {}}, "'where.line' is missing"),
    "neither": ({"count": 1, "either": [1]}, "'either' must be a string or a whole number"),
}


@pytest.mark.parametrize("field", FITTED)
def test_an_obvious_value_is_fitted_to_its_type(field: str) -> None:
    given, expected = FITTED[field]
    found = read_arguments(json.dumps({"count": 1, field: given}), SCHEMA)
    assert found == {"count": 1, field: expected}
    assert type(found[field]) is type(expected)


@pytest.mark.parametrize("name", KEPT)
def test_any_other_value_is_kept(name: str) -> None:
    field, value = KEPT[name]
    assert read_arguments(json.dumps({"count": 1, field: value}), SCHEMA)[field] == value


@pytest.mark.parametrize("name", MISFITS)
def test_a_value_that_does_not_fit_is_named(name: str) -> None:
    arguments, message = MISFITS[name]
    with pytest.raises(ValueError, match=message):
        read_arguments(json.dumps(arguments), SCHEMA)
