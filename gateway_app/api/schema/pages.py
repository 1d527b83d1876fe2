"""``/openapi.json`` and ``/docs``, described."""

from responses_app.requests.json_schema import (
    OPEN_OBJECT,
    STRING,
    Schema,
)
from responses_app.schema.builders import (
    Paths,
)
from responses_app.schema.operations import NO_KEY, json, operation, response

SCHEMAS: dict[str, Schema] = {}
PATHS: Paths = {
    "/openapi.json": {
        "get": operation(
            "get_openapi", "This document", (200, response(json(OPEN_OBJECT))), security=NO_KEY
        )
    },
    "/docs": {
        "get": operation(
            "get_docs",
            "This document for people",
            (200, response({"text/html": {"schema": STRING}})),
            security=NO_KEY,
        )
    },
}
