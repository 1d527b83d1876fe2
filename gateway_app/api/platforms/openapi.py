"""The OpenAPI description of the webhooks of messaging platforms."""

from responses_app.requests.json_schema import INTEGER, OPEN_OBJECT, STRING, Schema, const, shape
from responses_app.schema.builders import Paths, query
from responses_app.schema.operations import NO_KEY, json, operation, request_body, response

SCHEMAS: dict[str, Schema] = {}
_STORED = shape({"object": const("hermes.platform.events"), "stored": INTEGER})
PATHS: Paths = {
    "/api/platforms/{platform}/events": {
        "get": operation(
            "platform_challenge",
            "The platform checks the address of its webhook",
            (200, response({"text/plain": {"schema": STRING}})),
            parameters=[
                query("hub.mode", STRING, "subscribe, of Meta's platforms."),
                query("hub.verify_token", STRING, "The token of the configuration."),
                query("hub.challenge", STRING, "Comes back as the body."),
            ],
            errors=("404",),
            security=NO_KEY,
        ),
        "post": operation(
            "platform_events",
            "The platform brings messages. A 200 means that all of them are stored",
            (200, response(json(_STORED))),
            body=request_body(OPEN_OBJECT),
            errors=("404", "503"),
            security=NO_KEY,
        ),
    },
}
