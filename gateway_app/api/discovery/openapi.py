"""``/v1/capabilities`` and ``/v1/toolsets``, described."""

from itertools import chain

from gateway_app.api.discovery.endpoints import ENDPOINTS
from gateway_app.api.discovery.views import FEATURES, NOT_HERE
from responses_app.requests.json_schema import (
    BOOLEAN,
    INTEGER,
    STRING,
    Schema,
    array_of,
    const,
    ref,
    shape,
)
from responses_app.requests.model_name import model_name
from responses_app.schema.builders import (
    Paths,
    query,
)
from responses_app.schema.operations import json, operation, response

_KEPT = {"supported": BOOLEAN, "durable": BOOLEAN, "retention_seconds": INTEGER}
_OWN = (
    "responses_websocket",
    "responses_resume",
    "responses_background",
    "reasoning_streaming",
    "cors",
)
_FEATURES: dict[str, Schema] = dict.fromkeys(chain(FEATURES, NOT_HERE, _OWN), BOOLEAN)
_FEATURES |= {
    "idempotency": shape(_KEPT | {"streams": BOOLEAN, "joins_sdk_retries": BOOLEAN}),
    "runs_idempotency": shape(_KEPT),
    "session_continuity_header": STRING,
    "session_key_header": STRING,
    "max_body_bytes": INTEGER,
}
_TOOLSET = {
    "name": STRING,
    "label": STRING,
    "description": STRING,
    "enabled": BOOLEAN,
    "configured": BOOLEAN,
    "tools": array_of(STRING),
}
_ENDPOINT = shape({"method": STRING, "path": STRING})
SCHEMAS: dict[str, Schema] = {
    "Capabilities": shape(
        {
            "object": const("hermes.api_server.capabilities"),
            "platform": const("hermes-agent"),
            "version": STRING,
            "model": STRING,
            "auth": shape({"type": const("bearer"), "required": BOOLEAN}),
            "runtime": shape(
                {
                    "mode": STRING,
                    "tool_execution": STRING,
                    "split_runtime": BOOLEAN,
                    "description": STRING,
                }
            ),
            "features": shape(_FEATURES),
            "endpoints": shape(
                dict.fromkeys(ENDPOINTS, _ENDPOINT),
                ENDPOINTS,
                "Only what is served here, each under its name.",
            ),
        }
    ),
    "ToolsetList": shape(
        {
            "object": const("list"),
            "platform": const("api_server"),
            "data": array_of(shape(_TOOLSET)),
        }
    ),
}
PATHS: Paths = {
    "/v1/capabilities": {
        "get": operation(
            "get_capabilities",
            "What this server can do",
            (200, response(json(ref("Capabilities")))),
        )
    },
    "/v1/toolsets": {
        "get": operation(
            "list_toolsets",
            "The tools the server runs",
            (200, response(json(ref("ToolsetList")))),
            parameters=[
                query("model", model_name.schema, "For this model; absent, for the default agent.")
            ],
            errors=("404",),
        )
    },
}
