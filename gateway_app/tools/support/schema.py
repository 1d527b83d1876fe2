"""Arguments of a call, checked against the tool's own schema."""

from typing import Any

Schema = dict[str, Any]
_TYPES: dict[str, tuple[type, str]] = {
    "string": (str, "a string"),
    "integer": (int, "a whole number"),
    "boolean": (bool, "true or false"),
}


def parameters_of(required: dict[str, Schema], optional: dict[str, Schema] | None = None) -> Schema:
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }


def checked(arguments: dict[str, Any], parameters: Schema) -> dict[str, Any]:
    """Every argument the schema names, defaults filled in; null counts as left out."""
    properties: dict[str, Schema] = parameters["properties"]
    for name in arguments:
        if name not in properties:
            raise ValueError(
                f"there is no argument {name!r}; the arguments are {', '.join(properties)}"
            )
    return {
        name: _checked(name, arguments.get(name), schema, name in parameters["required"])
        for name, schema in properties.items()
    }


def _checked(name: str, value: Any, schema: Schema, is_required: bool) -> Any:
    if value is None:
        if is_required:
            raise ValueError(f"the argument {name!r} is missing")
        return schema.get("default")
    kind, described = _TYPES[schema["type"]]
    if kind is int and isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ValueError(f"the argument {name!r} must be {described}")
    _check_bounds(name, value, schema)
    return value


def _check_bounds(name: str, value: Any, schema: Schema) -> None:
    if isinstance(value, str):
        if len(value) > schema.get("maxLength", len(value)):
            raise ValueError(
                f"the argument {name!r} may have at most {schema['maxLength']} characters"
            )
        if len(value) < schema.get("minLength", 0):
            raise ValueError(f"the argument {name!r} must not be empty")
    elif not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        limits = [f"{word} {schema[key]}" for key, word in _LIMITS.items() if key in schema]
        raise ValueError(f"the argument {name!r} must be {' and '.join(limits)}")


_LIMITS = {"minimum": "at least", "maximum": "at most"}
