"""``/openapi.json`` and ``/docs``, described."""

from responses_app.schema.builders import (
    OPEN_OBJECT,
    STRING,
    Paths,
    Schema,
)
from responses_app.schema.operations import answer, json, operation

SCHEMAS: dict[str, Schema] = {}
PATHS: Paths = {
    "/openapi.json": {
        "get": operation(
            "get_openapi", "This document", (200, answer(json(OPEN_OBJECT))), is_open=True
        )
    },
    "/docs": {
        "get": operation(
            "get_docs",
            "This document for people",
            (200, answer({"text/html": {"schema": STRING}})),
            is_open=True,
        )
    },
}
