"""Arguments of a call, checked against the tool's own schema."""

from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

Schema = dict[str, Any]

_TYPE_NAMES = {"string": "a string", "integer": "a whole number", "boolean": "true or false"}


def parameters_of(required: dict[str, Schema], optional: dict[str, Schema] | None = None) -> Schema:
    return {
        "type": "object",
        "properties": required | (optional or {}),
        "required": list(required),
        "additionalProperties": False,
    }


def checked(arguments: dict[str, Any], parameters: Schema) -> dict[str, Any]:
    """Every argument in the schema. Null counts as left out, which jsonschema does not allow.

    jsonschema fills in no defaults, and lets 2.0 pass for an integer without making it one.
    """
    given = {name: value for name, value in arguments.items() if value is not None}
    for error in Draft202012Validator(parameters).iter_errors(given):
        raise ValueError(_explain(error, parameters))
    values = {}
    for name, schema in parameters["properties"].items():
        value = given.get(name, schema.get("default"))
        if isinstance(value, float) and schema["type"] == "integer":
            value = int(value)
        values[name] = value
    return values


def _explain(error: ValidationError, parameters: Schema) -> str:
    """jsonschema's own messages quote the value, which may be a whole file."""
    keyword = error.validator
    if keyword == "additionalProperties":
        known = parameters["properties"]
        unknown = next(name for name in error.instance if name not in known)
        return f"there is no argument {unknown!r}; the arguments are {', '.join(known)}"
    if keyword == "required":
        missing = next(name for name in parameters["required"] if name not in error.instance)
        return f"the argument {missing!r} is missing"
    name = str(error.path[0])
    schema = parameters["properties"][name]
    if keyword == "type":
        return f"the argument {name!r} must be {_TYPE_NAMES[schema['type']]}"
    if keyword == "maxLength":
        return f"the argument {name!r} may have at most {schema['maxLength']} characters"
    if keyword == "minLength":
        return f"the argument {name!r} must not be empty"
    limits = []
    if "minimum" in schema:
        limits.append(f"at least {schema['minimum']}")
    if "maximum" in schema:
        limits.append(f"at most {schema['maximum']}")
    return f"the argument {name!r} must be {' and '.join(limits)}"
