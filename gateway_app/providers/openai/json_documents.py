"""The JSON document in a model's answer, compared with the schema that the client gave.

The client wrote the schema, so it is not trusted: nothing is fetched for it, none of its patterns is
run (a short one can take hours), and its references are followed a limited number of times. All of
this may take a while and belongs in a thread.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import orjson
from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import SchemaError
from jsonschema.validators import extend, validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

from gateway_app.agent.events import ModelFailed

MAX_ERRORS = 5
MAX_ERROR_CHARS = 200  # of each: jsonschema quotes whole values
MAX_REFERENCES = 100_000  # a schema of a few lines can have an exponential number of them
THINKING_END = "</think>"
FENCE = "```"

Schema = dict[str, Any]


class DocumentRejected(Exception):
    """The text is no document that the schema allows; the errors are for the model."""

    def __init__(self, errors: list[str]) -> None:
        super().__init__("; ".join(errors))
        self.errors = errors


def check_schema(schema: Schema) -> None:
    """Raises ModelFailed for a schema with which no document can be compared."""
    base: Any = validator_for(schema, default=Draft202012Validator)
    try:
        base.check_schema(schema, format_checker=FormatChecker(formats=()))
    except SchemaError as error:
        raise _bad_schema(f"{error.json_path}: {error.message}") from None
    except RecursionError:
        raise _bad_schema("it is nested too deeply") from None


def checked_text(text: str, schema: Schema, max_references: int = MAX_REFERENCES) -> str:
    """The answer with nothing around its document but the reasoning before it.

    Raises DocumentRejected, with what is wrong, where the schema does not allow it.
    """
    reasoning, answer = _split_reasoning(text)
    written = _without_fence(answer)
    try:
        document = orjson.loads(written)
    except orjson.JSONDecodeError as error:
        raise DocumentRejected([f"It is not one JSON document: {error}"]) from None
    errors = _errors(document, _validator(schema, max_references))
    if errors:
        raise DocumentRejected(errors)
    return reasoning + written


def _errors(document: Any, validator: Any) -> list[str]:
    found: list[str] = []
    try:
        for error in islice(validator.iter_errors(document), MAX_ERRORS):
            found.append(f"{error.json_path}: {error.message}"[:MAX_ERROR_CHARS])
    except Unresolvable as error:
        raise _bad_schema(str(error)) from None
    except RecursionError:
        raise _bad_schema("its references have no end") from None
    return found


def _validator(schema: Schema, max_references: int) -> Any:
    base: Any = validator_for(schema, default=Draft202012Validator)
    changed: dict[str, Any] = {
        "pattern": _unchecked,
        "patternProperties": _unchecked,
        "unevaluatedProperties": _unchecked,
        "additionalProperties": _additional_properties(base),
    }
    budget = _Budget(max_references)
    for keyword in ("$ref", "$dynamicRef"):
        if keyword in base.VALIDATORS:
            changed[keyword] = budget.limited(base.VALIDATORS[keyword])
    # A validator with its own registry fetches no reference from elsewhere.
    return extend(base, changed)(_without_dialect(schema), registry=Registry())


class _Budget:
    """How many references may still be followed."""

    def __init__(self, references: int) -> None:
        self._left = references

    def limited(self, follow: Any) -> Any:
        def follow_reference(validator: Any, ref: Any, instance: Any, schema: Any) -> Any:
            self._left -= 1
            if self._left < 0:
                raise RecursionError
            return follow(validator, ref, instance, schema)

        return follow_reference


def _unchecked(validator: Any, value: Any, instance: Any, schema: Any) -> None:
    """The keyword runs patterns, or depends on one that does."""


def _additional_properties(base: Any) -> Any:
    check = base.VALIDATORS["additionalProperties"]

    def check_unless_patterns(
        validator: Any, value: Any, instance: Any, schema: Any
    ) -> Iterator[Any]:
        if "patternProperties" not in schema:
            yield from check(validator, value, instance, schema)

    return check_unless_patterns


def _without_dialect(schema: Any) -> Any:
    """``$schema`` in a part of a schema would replace the validator, with the one that runs patterns."""
    if isinstance(schema, list):
        return [_without_dialect(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    kept: Schema = {}
    for name, part in schema.items():
        if name != "$schema" or not isinstance(part, str):
            kept[name] = _without_dialect(part)
    return kept


def _split_reasoning(text: str) -> tuple[str, str]:
    """Some models write their reasoning in front of the answer; the agent takes it out."""
    end = text.find(THINKING_END)
    if end < 0 or not text.lstrip().startswith("<think>"):
        return "", text
    end += len(THINKING_END)
    return text[:end], text[end:]


def _without_fence(text: str) -> str:
    text = text.strip()
    if not text.startswith(FENCE) or not text.endswith(FENCE) or len(text) < 2 * len(FENCE):
        return text
    inside = text[len(FENCE) : -len(FENCE)]
    language, newline, rest = inside.partition("\n")
    if newline and language.strip().lower() in ("", "json"):
        return rest.strip()
    return text


def _bad_schema(why: str) -> ModelFailed:
    message = f"The answer can't be compared with the schema of its format: {why[:MAX_ERROR_CHARS]}"
    return ModelFailed(message, "invalid_prompt")
