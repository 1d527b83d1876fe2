"""Arguments of a call, checked against the tool's own schema.

Not with jsonschema: it fills in no defaults, takes null for a value, quotes whole files in its
messages, and its import costs each worker of search_files 90 ms. Tools need the standard library alone.
"""

from typing import Any

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
    """Every argument in the schema, with its default where it is null or left out."""
    properties: dict[str, Schema] = parameters["properties"]
    for name in arguments:
        if name not in properties:
            known = ", ".join(properties)
            raise ValueError(f"there is no argument {name!r}; the arguments are {known}")
    values: dict[str, Any] = {}
    for name, schema in properties.items():
        value = arguments.get(name)
        if value is not None:
            values[name] = _checked(name, value, schema)
        elif name in parameters["required"]:
            raise ValueError(f"the argument {name!r} is missing")
        else:
            values[name] = schema.get("default")
    return values


def _checked(name: str, value: Any, schema: Schema) -> Any:
    kind = schema["type"]
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        value = int(value)
    if not _is_of_type(value, kind):
        raise ValueError(f"the argument {name!r} must be {_TYPE_NAMES[kind]}")
    if isinstance(value, str):
        _check_length(name, value, schema)
    else:
        _check_limits(name, value, schema)
    return value


def _is_of_type(value: Any, kind: str) -> bool:
    if kind == "string":
        return isinstance(value, str)
    if kind == "boolean":
        return isinstance(value, bool)
    return isinstance(value, int) and not isinstance(value, bool)


def _check_length(name: str, value: str, schema: Schema) -> None:
    if "maxLength" in schema and len(value) > schema["maxLength"]:
        limit = schema["maxLength"]
        raise ValueError(f"the argument {name!r} may have at most {limit} characters")
    if not value and schema.get("minLength"):
        raise ValueError(f"the argument {name!r} must not be empty")


def _check_limits(name: str, value: int, schema: Schema) -> None:
    limits = []
    is_within = True
    if "minimum" in schema:
        limits.append(f"at least {schema['minimum']}")
        is_within = value >= schema["minimum"]
    if "maximum" in schema:
        limits.append(f"at most {schema['maximum']}")
        is_within = is_within and value <= schema["maximum"]
    if not is_within:
        raise ValueError(f"the argument {name!r} must be {' and '.join(limits)}")
