"""The OpenAPI document: the doors describe themselves, here they are put together."""

import re
from typing import Any

from django.conf import settings

import gateway_app.api.chat.openapi as chat
import gateway_app.api.discovery.openapi as discovery
import gateway_app.api.runs.openapi as runs
import gateway_app.api.schema.pages as pages
import gateway_app.api.sessions.openapi as sessions
import gateway_app.operations.monitoring.openapi as monitoring
from responses_app.requests.json_schema import (
    Schema,
    string,
)
from responses_app.schema import (
    conversations,
    events,
    inputs,
    items,
    requests,
    responses,
)
from responses_app.schema import (
    operations as answers,
)
from responses_app.schema.builders import (
    Operation,
    Paths,
    lifted,
)

VERSION = "3.2.0"  # the first that can describe a stream of events
_DOORS = (responses, conversations, chat, runs, sessions, discovery, monitoring, pages)
_VOCABULARY = (items, inputs, requests, events)
_ABOUT = """\
OpenAI's Responses and Chat Completions, and Hermes' runs and sessions, over the same stored responses.

Every error is `{"error": {"message", "type", "param", "code"}}`, for unknown paths and broken HTTP too. Fields that a
request may have but nothing acts on are named in the header `X-Hermes-Ignored`. In a request, `null` is as good as
absent. In streams, comment lines (`: keepalive`) come every ten seconds of silence.
"""
_ARGUMENTS = {
    "model": "A name of GET /v1/models; a slash in it may stay as it is.",
    "response_id": "resp_…",
    "conversation_id": "conv_…, or its name.",
    "item_id": "The id of an item.",
    "completion_id": "chatcmpl-…",
    "run_id": "run_…",
    "session_id": "As the X-Hermes-Session-Id header names it.",
}


def document() -> dict[str, Any]:
    shared = answers.components()
    return {
        "openapi": VERSION,
        "info": {"title": "Hermes Site", "version": settings.HERMES_VERSION, "description": _ABOUT},
        "servers": [{"url": "/"}],
        "security": [{"bearer": []}] if settings.HERMES_AUTH == "on" else [],
        "tags": [{"name": tag} for tag in dict.fromkeys(_tag(path) for path in _paths())],
        "paths": {path: _with_arguments(path, operations) for path, operations in _paths().items()},
        "components": {
            **shared,
            "schemas": {**shared["schemas"], **_schemas()},
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def _paths() -> Paths:
    return {path: operations for door in _DOORS for path, operations in door.PATHS.items()}


def _schemas() -> dict[str, Schema]:
    return {
        name: schema
        for door in (*_VOCABULARY, *_DOORS)
        for name, schema in sorted(door.SCHEMAS.items())
    }


def _with_arguments(path: str, operations: dict[str, Operation]) -> dict[str, Any]:
    named = re.findall(r"{(\w+)}", path)
    given = [
        {"name": name, "in": "path", "required": True, **lifted(string(_ARGUMENTS[name]))}
        for name in named
    ]
    tagged = {
        method: {"tags": [_tag(path)], **operation} for method, operation in operations.items()
    }
    return {**({"parameters": given} if given else {}), **tagged}


def _tag(path: str) -> str:
    """The collection: ``/v1/chat/completions/{id}`` is about chat."""
    return next(part for part in path.split("/") if part not in ("", "v1", "api")).removesuffix(
        ".json"
    )
