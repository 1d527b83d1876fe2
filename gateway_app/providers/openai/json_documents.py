"""The JSON document in a model's answer, compared with the schema that the client gave, in a thread."""

from typing import Any

import orjson

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
    from gateway_app.providers.openai import json_schemas

    json_schemas.check_schema(schema)


def checked_text(text: str, schema: Schema, max_references: int = MAX_REFERENCES) -> str:
    """The answer with nothing around its document but the reasoning before it.

    Raises DocumentRejected, with what is wrong, where the schema does not allow it.
    """
    from gateway_app.providers.openai.json_schemas import errors_of  # needs a large library

    reasoning, answer = _split_reasoning(text)
    written = _without_fence(answer)
    try:
        document = orjson.loads(written)
    except orjson.JSONDecodeError as error:
        raise DocumentRejected([f"It is not one JSON document: {error}"]) from None
    errors = errors_of(document, schema, max_references)
    if errors:
        raise DocumentRejected(errors)
    return reasoning + written


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
