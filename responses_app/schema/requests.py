"""The bodies of requests: made from the fields that the server reads."""

from responses_app.requests import approvals, compact, content, create, items
from responses_app.requests.json_schema import (
    Schema,
    present,
)
from responses_app.requests.structures import object_of

_NOT_EMPTY = [present("input"), present("previous_response_id")]
SCHEMAS: dict[str, Schema] = {
    "CreateResponse": object_of(create.FIELDS, ("input",)).schema,
    "CountTokens": object_of(create.FIELDS).schema,
    "CompactConversation": object_of(compact.FIELDS, ("model",)).schema | {"anyOf": _NOT_EMPTY},
    "Decision": object_of(approvals.FIELDS, ("choice",)).schema,
}
SCHEMAS |= content.SCHEMAS | items.SCHEMAS
