"""The OpenAPI description of ``/health/detailed``, ``/api/status`` and ``/metrics``."""

from responses_app.requests.json_schema import (
    OPEN_OBJECT,
    STRING,
    Schema,
)
from responses_app.schema.builders import (
    Paths,
)
from responses_app.schema.operations import Security, json, operation, response

SCHEMAS: dict[str, Schema] = {}
_STATE = (200, response(json(OPEN_OBJECT)))
_METRICS = (200, response({"text/plain": {"schema": STRING}}))
_WITH_A_KEY: Security = [{"bearer": []}]  # also with HERMES_AUTH=off
_WITH_OR_WITHOUT_A_KEY: Security = [{}, {"bearer": []}]
PATHS: Paths = {
    "/health/detailed": {
        "get": operation(
            "health_detailed",
            "Health in detail: eight fields on loopback, all with a key",
            _STATE,
            security=_WITH_OR_WITHOUT_A_KEY,
        )
    },
    "/api/status": {
        "get": operation(
            "status",
            "Where a gateway runs; paths, pid and address need a key",
            _STATE,
            security=_WITH_OR_WITHOUT_A_KEY,
        )
    },
    "/metrics": {
        "get": operation("metrics", "Numbers for Prometheus", _METRICS, security=_WITH_A_KEY)
    },
}
