"""A model's answer, compared with a schema that a client wrote."""

from typing import Any

import pytest

from gateway_app.agent.events import ModelFailed
from gateway_app.providers.openai.json_documents import DocumentRejected, check_schema, checked_text

NUMBER = {"type": "integer"}


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("1", "1"),
        (" 1\n", "1"),
        ("```json\n1\n```", "1"),
        ("```\n1\n```\n", "1"),
        ("<think>2? No.</think>\n1", "<think>2? No.</think>1"),
        ("<think>a</think>```json\n1\n```", "<think>a</think>1"),
    ],
)
def test_what_is_around_a_document_is_removed(text: str, sent: str) -> None:
    assert checked_text(text, NUMBER) == sent


@pytest.mark.parametrize("text", ["", "one", "1 2", "It is 1.", "```json\n1", "```xml\n1\n```", "NaN", "```", "{"])
def test_a_text_that_is_no_document_is_rejected(text: str) -> None:
    with pytest.raises(DocumentRejected, match="not one JSON document"):
        checked_text(text, NUMBER)


def test_errors_name_the_part_and_stay_short() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": NUMBER}}, "required": ["b"]}
    with pytest.raises(DocumentRejected) as rejected:
        checked_text('{"a": [1, "' + "x" * 5000 + '"]}', schema)
    assert sorted(error[:8] for error in rejected.value.errors) == ["$.a[1]: ", "$: 'b' i"]
    assert max(len(error) for error in rejected.value.errors) <= 200


def test_references_inside_the_schema_are_followed() -> None:
    schema: dict[str, Any] = {"$ref": "#/$defs/node", "$defs": {}}
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}, "additionalProperties": False}
    schema["$defs"]["node"] = node
    assert checked_text('{"next": {"next": {}}}', schema)
    with pytest.raises(DocumentRejected, match="'last' was unexpected"):
        checked_text('{"next": {"last": {}}}', schema)


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/none"},
        {"$ref": "http://127.0.0.1:9/schema.json"},
        {"$ref": "#"},
    ],
)
def test_references_that_lead_nowhere_are_an_error_of_the_request(schema: dict[str, Any]) -> None:
    check_schema(schema)
    with pytest.raises(ModelFailed) as failed:
        checked_text("1", schema)
    assert failed.value.code == "invalid_prompt"


def test_a_schema_whose_references_multiply_is_given_up() -> None:
    names = [f"d{index}" for index in range(40)]
    parts: dict[str, Any] = {"d40": NUMBER}
    for index, name in enumerate(names):
        twice = {"$ref": f"#/$defs/d{index + 1}"}
        parts[name] = {"allOf": [twice, twice]}
    with pytest.raises(ModelFailed, match="have no end"):
        checked_text("1", {"$ref": "#/$defs/d0", "$defs": parts}, max_references=1000)


@pytest.mark.parametrize("dialect", ["http://json-schema.org/draft-07/schema#", None])
def test_no_pattern_of_a_client_is_run(dialect: str | None) -> None:
    slow = "(a+)+$"
    text = '{"name": "' + "a" * 60 + '!"}'
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"name": {"type": "string", "pattern": slow}},
        "patternProperties": {slow: {"$schema": "http://json-schema.org/draft-07/schema#", "pattern": slow}},
        "additionalProperties": False,
        "propertyNames": {"pattern": slow},
    }
    if dialect:
        schema["$schema"] = dialect
        schema["properties"]["name"]["$schema"] = dialect
    check_schema(schema)
    assert checked_text(text, schema) == text


def test_a_schema_of_an_older_draft_is_read_as_such() -> None:
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", "items": [NUMBER, {"type": "string"}]}
    check_schema(schema)
    assert checked_text('[1, "a"]', schema)
    with pytest.raises(DocumentRejected):
        checked_text('["a", 1]', schema)
