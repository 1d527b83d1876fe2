"""Whether a document follows the schema that the client gave.

The client wrote the schema, so it is not trusted: nothing is fetched for it, none of its patterns is
run (a short one can take hours), and its references are followed a limited number of times. All of
this may take a while and belongs in a thread.

Only requests with such a format import this module: the library takes memory.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import SchemaError
from jsonschema.validators import extend, validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

from gateway_app.agent.events import ModelFailed

MAX_ERRORS = 5
MAX_ERROR_CHARS = 200  # of each: jsonschema quotes whole values

Schema = dict[str, Any]


def check_schema(schema: Schema) -> None:
    """Raises ModelFailed for a schema with which no document can be compared."""
    base: Any = validator_for(schema, default=Draft202012Validator)
    try:
        base.check_schema(schema, format_checker=FormatChecker(formats=()))
    except SchemaError as error:
        raise _bad_schema(f"{error.json_path}: {error.message}") from None
    except RecursionError:
        raise _bad_schema("it is nested too deeply") from None


def errors_of(document: Any, schema: Schema, max_references: int) -> list[str]:
    """What the schema does not allow; empty for a document that follows it."""
    found: list[str] = []
    validator = _validator(schema, max_references)
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


def _bad_schema(why: str) -> ModelFailed:
    message = f"The answer can't be compared with the schema of its format: {why[:MAX_ERROR_CHARS]}"
    return ModelFailed(message, "invalid_prompt")
